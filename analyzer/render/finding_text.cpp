// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/finding_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/owner/python_distributions.h"

namespace kshim::analysis {
namespace {

constexpr double kLikely = 0.6;  // below, the title says "probably"

std::string_view title_pattern(const Finding& finding) {
  // What was said of this one finding tells more than what is said of all of its cause.
  if (!finding.headline.empty()) return finding.headline;
  switch (finding.cause) {
#define KSHIM_TITLE(cause, text) \
  case Cause::cause:             \
    return text;
#include "analyzer/say/titles.def"
#undef KSHIM_TITLE
    default:
      return row_of(finding.cause).headline;
  }
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

// Without the ordinal and the word, which the row below the title has.
std::string gpu_name(const Finding& finding) {
  if (finding.devices.empty()) return "this GPU";
  if (const auto targets = targets_of(finding); targets.size() > 1) return enumerate(targets);
  const Device& device = finding.devices.front();
  std::string name = text_of(device);
  if (device.kind == Device::Kind::present && device.ordinal) name.erase(0, name.find(": ") + 2);
  if (device.kind == Device::Kind::target && device.cc) name.erase(0, name.find(' ') + 1);
  if (const std::size_t more = finding.devices.size() - 1; more != 0)
    name += fmt::format(" and {}", counted(more, "other GPU"));
  return name;
}

// Two of the architectures; of a file with locked code, those that are.
std::vector<std::string> title_have(const Finding& finding) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> have = finding.have;
  if (finding.cause == Cause::arch_specific_image) {
    std::erase_if(have, [](const std::string& arch) { return !arch.ends_with('a') && !arch.ends_with('f'); });
    if (have.empty()) have = finding.have;
  }
  have.resize(std::min(have.size(), kNamed));
  return have;
}

// The kernel's name without its parameters.
std::string kernel_name(std::string_view demangled) {
  constexpr std::size_t kRoom = 50;
  std::string name = shorten(demangled, kRoom);
  if (const std::size_t open = name.find('('); open != std::string::npos && open > 0) name.resize(open);
  return name;
}

std::string file_name(const Finding& finding) {
  if (finding.object.empty()) {
    const bool of_log = !finding.devices.empty() && finding.devices.front().kind == Device::Kind::named;
    return of_log || finding.images.empty() ? "what failed" : "an image in memory";
  }
  std::string name(basename_of(finding.object));
  const std::string package = finding.package.label();
  if (package.empty()) return name;
  const std::string copy = packages::vendored_library(finding.object);
  if (!copy.empty()) return fmt::format("the copy of {} inside {}", copy, package);
  return fmt::format("{} of {}", name, package);
}

void fill_title(const Finding& finding, std::string& text) {
  replace(text, "{file}", file_name(finding));
  replace(text, "{gpu}", gpu_name(finding));
  replace(text, "{have}", enumerate(title_have(finding)));
}

}  // namespace

std::vector<std::string> targets_of(const Finding& finding) {
  std::vector<std::string> out;
  for (const Device& device : finding.devices)
    if (device.kind == Device::Kind::target && device.cc)
      out.emplace_back(image::to_name(image::ImageKind::cubin, {*device.cc, image::Suffix::none}).view());
  return out;
}

std::string place_text(const Place& place) {
  if (!place.file.empty()) {
    std::string text = place.file;
    if (place.line != 0) text += fmt::format(":{}", place.line);
    if (!place.function.empty()) text += fmt::format(", in {}", shorten(place.function, 60));
    return text;
  }
  if (!place.function.empty()) {
    return fmt::format("{}, in {}", shorten(place.function, 60), basename_of(place.object));
  }
  return fmt::format("{} +0x{:x}", place.object, place.offset);
}

bool counts(const Finding& finding) {
  return finding.cause == Cause::latent_gap && !finding.headline.empty();
}

std::string headline_of(const Finding& finding) {
  if (finding.headline.empty()) return std::string(row_of(finding.cause).headline);
  std::string text = finding.headline;
  fill_title(finding, text);
  return text;
}

std::string how_often(const Finding& finding) {
  std::string text;
  if (finding.call_count > 1) text += fmt::format(", {} times", finding.call_count);
  const std::uint64_t others = finding.count - std::min(finding.count, finding.call_count);
  if (finding.call_count != 0 && others != 0)
    text += fmt::format("; {} with it",
                        others == 1 ? "another call failed" : fmt::format("{} other calls failed", others));
  return text;
}

std::string title_sentence(const Finding& finding) {
  std::string title = title_of(finding);
  const std::string_view file = basename_of(finding.object);
  if (file.empty() || !title.starts_with(file)) return as_sentence(std::move(title));
  return title + '.';
}

std::string title_of(const Finding& finding) {
  std::string text(title_pattern(finding));
  const bool about_file = text.find("{file}") != std::string::npos;
  fill_title(finding, text);
  const std::string& kernel = !finding.failed_kernel.empty() || finding.kernels.empty()
                                  ? finding.failed_kernel
                                  : finding.kernels.front();
  const bool sure = finding.confidence >= kLikely;
  const bool failed = finding.code || !finding.failed_call.empty();
  if (failed && !kernel.empty() && about_file && finding.severity == Severity::error) {
    return fmt::format("kernel {} cannot run{} {}", kernel_name(kernel), sure ? ":" : ", probably because",
                       text);
  }
  // Which libraries are there is seen; what is not sure is that they are the cause.
  const bool seen = finding.cause == Cause::mixed_cuda_libraries || finding.cause == Cause::cudnn_mismatch;
  return sure || counts(finding) || seen || finding.cause == Cause::unknown ? text : "probably " + text;
}

std::string_view kind_of(const Finding& finding) {
  return finding.severity == Severity::info ? std::string_view("note") : to_name(finding.severity);
}

std::string counted_findings(std::span<const Finding> findings) {
  std::vector<std::string> parts;
  for (const auto& [severity, noun] :
       {std::pair{Severity::error, "error"}, std::pair{Severity::warning, "warning"}}) {
    const auto n = std::count_if(findings.begin(), findings.end(),
                                 [s = severity](const Finding& finding) { return finding.severity == s; });
    if (n != 0) parts.push_back(counted(static_cast<std::uint64_t>(n), noun));
  }
  return enumerate(parts);
}

std::string message_text(const Finding& finding) {
  std::string text = title_sentence(finding);
  for (const Fix& fix : finding.fixes) {
    text += fmt::format("\n{}: {}", &fix == finding.fixes.data() ? "Fix" : "Or", fix.title);
    for (const std::string& command : fix.commands) text += "\n    " + command;
  }
  return text;
}

}  // namespace kshim::analysis
