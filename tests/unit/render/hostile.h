// SPDX-License-Identifier: Apache-2.0
// An analysis and a scan whose every string was chosen by an enemy of some format.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/scan.h"
#include "each_string.h"
#include "tests/support/command_names.h"

namespace kshim::test {

/// {} is the number of the string, so that each can be told from the others.
inline const std::array<std::string, 17>& hostile_texts() {
  static const std::array<std::string, 17> texts = {
      "\x1b]0;owned\x07\x1b[2J\u009b31m",
      "</script><script>alert(1)</script>",
      "</style><img src=x onerror=alert(1)>",
      "\"><svg onload=alert(1)>'",
      "]]><![CDATA[ <evil/> &amp; &#0;",
      "\n::error file=evil.py::injected\r\n::set-output name=x::y",
      "::error::at the begin ::stop-commands::x ##[error]anywhere ##[add-mask]e",
      "a%0Ab%3A,c:d,line=7",
      "```\n# heading\n````",
      "| cell || `code` \\| x \\",
      "@octocat #1 GH-1 octo/repo#12 https://evil.example/x www.evil.example a@evil.example",
      "![x](https://evil.example/i.png) [y](javascript:alert(1)) <https://evil.example>",
      "</details> <!-- <b>**bold** _it_ ~~s~~ $x$ :+1: file.py:100: [^1]",
      "\xe2\x28\xa1\xff\xfe broken \xed\xa0\x80",
      "\u202etxt.exe\u200b\ufffe\uffff",
      std::string("nul\0in the middle", 17),
      std::string(10'000, 'n') + "<x>",
  };
  return texts;
}

class HostileText {
 public:
  void operator()(std::string& text) { text = next(); }
  std::string next() {
    const auto& texts = hostile_texts();
    const std::size_t number = next_++;
    return texts[number % texts.size()] + " " + std::to_string(number);
  }

 private:
  std::size_t next_ = 0;
};

inline Finding full_finding(Cause cause, Severity severity) {
  Finding out;
  out.cause = cause;
  out.severity = severity;
  out.confidence = 0.7;
  out.code = 209;
  for (auto* list : {&out.kernels, &out.have, &out.remarks}) list->resize(5);
  out.devices.resize(5);
  for (Device& device : out.devices) device.ordinal = 0U;
  out.images = {{{}, {}, {}, 1, true, {}}, {{}, {}, {}, 2, false, {}}, {{}, {}, {}, 3, false, {}}};
  out.evidence.resize(3);
  out.where = {{{}, 7, {}, {}, 0, true}, {{}, 0, {}, {}, 16, false}};
  out.fixes.resize(3);
  for (Fix& fix : out.fixes) fix.commands.resize(2);
  out.dead_ends.resize(2);
  out.kernel_source.line = 3;
  return out;
}

/// `shift` moves every text to another place.
inline Analysis hostile_analysis(std::size_t shift = 0) {
  Analysis out;
  out.verdict = Verdict::gap;
  out.devices.resize(2);
  out.processes.resize(3);
  for (ProcessSummary& process : out.processes) process.argv.resize(3);
  out.findings = {
      full_finding(Cause::unknown, Severity::error), full_finding(Cause::no_image_for_arch, Severity::error),
      full_finding(Cause::latent_gap, Severity::warning), full_finding(Cause::benign_probe, Severity::info)};
  out.notes.resize(17);
  out.blind.resize(2);
  HostileText text;
  for (std::size_t i = 0; i < shift; ++i) text.next();
  each_string(out, [&](std::string& each) { text(each); });
  out.findings[0].seen_by = {1};
  return out;
}

inline Scan hostile_scan(std::size_t shift = 0) {
  HostileText text;
  for (std::size_t i = 0; i < shift; ++i) text.next();
  Scan out;
  out.targets = {{{7, 5}, {}}, {{9, 0}, image::Suffix::a}};
  out.files = 5;
  out.objects.resize(17);
  for (ScannedObject& object : out.objects) {
    for (std::string* each : {&object.path, &object.member, &object.build_id, &object.format,
                              &object.package.name, &object.package.version})
      text(*each);
    object.images = {{{image::ImageKind::cubin, {{8, 0}, {}}, {}}, 2, 100},
                     {{image::ImageKind::ptx, {{9, 0}, image::Suffix::a}, {8, 4}}, 2, 100}};
    object.targets = {{out.targets[0], 0, 0, 3}, {out.targets[1], 1, 1, 0}};
    object.kernels.emplace(17);
    for (ScannedKernel& kernel : *object.kernels) {
      text(kernel.name);
      text(kernel.demangled);
      kernel.images = {{"sm_80", 32, 0, 0, 1024}, {"compute_90", 0, 0, 0, 0}};
    }
  }
  out.findings = hostile_analysis(shift).findings;
  out.findings[0].object = out.objects[0].name();
  out.findings[0].need = "sm_75";
  out.findings[1].object = out.objects[1].name();
  out.notes.resize(17);
  for (ReadNote& note : out.notes) {
    text(note.place);
    text(note.what);
  }
  return out;
}

}  // namespace kshim::test
