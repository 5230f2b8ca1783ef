// SPDX-License-Identifier: Apache-2.0
// One screen: what is wrong first, then what there is.
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/render/page.h"
#include "analyzer/verbs/doctor.h"

namespace kshim::doctor {
namespace {

using analysis::Page;
using analysis::Severity;
using analysis::Tone;

class Writer {
 public:
  Writer(const Facts& facts, const analysis::RenderOptions& options)
      : facts_(facts), page_(options), unicode_(options.unicode) {}

  std::string write() {
    checks();
    system();
    gpus();
    driver();
    toolkits();
    pythons();
    coverage();
    libraries();
    preloads();
    program();
    return std::move(page_).take();
  }

 private:
  // Names of files and variables are strangers' texts.
  std::string clean(const std::string& text) const {
    return unicode_ ? analysis::harmless(text) : analysis::ascii(text);
  }
  /// A label in front of the first of several rows.
  void row(std::string_view label, const std::string& text) {
    if (last_.empty()) page_.blank();
    page_.row(label == last_ ? std::string_view() : label, clean(text));
    last_ = label;
  }

  void checks() {
    const bool wrong = std::any_of(facts_.checks.begin(), facts_.checks.end(),
                                   [](const Check& check) { return check.severity >= Severity::warning; });
    const bool no_driver = std::any_of(facts_.checks.begin(), facts_.checks.end(),
                                       [](const Check& check) { return check.id == "no-libcuda"; });
    if (!wrong && no_driver)
      page_.titled(Tone::strong, "no GPU:",
                   "CUDA programs find no GPU on this machine; `kshim run --simulate` gives them one");
    else if (!wrong)
      page_.titled(Tone::good, "ok:", "nothing here gets in the way of CUDA programs or of libkshim.so");
    for (const Check& check : facts_.checks) {
      const bool note = check.severity == Severity::info;
      const Tone tone = note ? Tone::strong : check.severity == Severity::error ? Tone::error : Tone::warning;
      page_.titled(tone, note ? "note:" : fmt::format("{}:", analysis::to_name(check.severity)),
                   clean(check.text));
      if (!check.advice.empty()) page_.paragraph(clean(check.advice), 2, 0);
    }
  }
  void system() {
    const System& system = facts_.system;
    std::vector<std::string> parts;
    for (const std::string& part : {system.os, system.kernel, system.machine})
      if (!part.empty()) parts.push_back(part);
    if (!system.glibc.empty()) parts.push_back("glibc " + system.glibc);
    if (!parts.empty()) row("system", analysis::join(parts, ", "));
  }
  void gpus() {
    for (const Gpu& gpu : facts_.gpus) {
      std::string text = gpu.name.empty() ? "an NVIDIA GPU" : gpu.name;
      if (gpu.cc)
        text += fmt::format(", compute capability {} (sm_{}{})", image::to_name(*gpu.cc).view(),
                            gpu.cc->number(), gpu.cc_by_name ? "; by its name" : "");
      if (!gpu.pci.empty()) text += ", " + gpu.pci;
      if (gpu.mig) text += ", split (MIG)";
      if (facts_.driver.kernel_module.empty() && facts_.driver.asked.empty())
        text += ", and no driver to ask";
      row("GPU", text);
    }
    if (facts_.gpus.empty()) row("GPU", "none");
  }
  void driver() {
    const Driver& driver = facts_.driver;
    std::string text = driver.kernel_module;
    if (driver.cuda.known())
      text +=
          fmt::format("{}for CUDA {} and PTX {} and older (by {})", text.empty() ? "" : ", ",
                      image::to_name(driver.cuda).view(), image::to_name(driver.isa).view(), driver.asked);
    row("driver", text.empty() ? "none" : text);
  }
  void toolkits() {
    for (const Toolkit& toolkit : facts_.toolkits)
      row("toolkit",
          fmt::format("{} in {} ({}{})",
                      toolkit.version.known() ? image::to_name(toolkit.version).view() : "?", toolkit.folder,
                      analysis::join(toolkit.known_by, ", "), toolkit.compiler ? "" : "; no nvcc"));
    if (!facts_.nvcc.empty()) row("nvcc", facts_.nvcc);
    if (!facts_.ptxas.empty()) row("ptxas", facts_.ptxas);
  }
  void pythons() {
    for (const Python& python : facts_.pythons) {
      std::vector<std::string> wheels;
      for (const PythonWheel& wheel : python.wheels) wheels.push_back(wheel.name + " " + wheel.version);
      const std::string how = python.manager.empty() ? std::string() : " (" + python.manager + ")";
      row("Python", fmt::format("{} {}{}: {}", python.interpreter, python.version, how,
                                wheels.empty() ? "none of CUDA's packages" : analysis::join(wheels, ", ")));
    }
  }
  void coverage() {
    for (const PackageCoverage& package : facts_.coverage) {
      std::string text = fmt::format("{}: {}", package.package.empty() ? "no package" : package.package,
                                     analysis::join(package.archs, " "));
      for (const GpuCoverage& gpu : package.gpus)
        text += fmt::format("; runs on {}: {}", image::to_name(gpu.cc).view(), coverage_text(gpu));
      row("built for", text);
    }
  }
  void library(std::string_view label, const Library& library) {
    const bool link = library.file.real != library.file.path;
    row(label, fmt::format("{}: {}{} (by {})", library.name, library.file.path,
                           link && !library.version.empty() ? ", " + library.version : "", library.file.how));
  }
  void libraries() {
    for (const Library& found : facts_.libraries) library("loads", found);
    if (facts_.libraries.empty()) row("loads", "none of CUDA's libraries by name alone");
  }
  void preloads() {
    for (const Preload& preload : facts_.preloads)
      row("preload", preload.path + (preload.note.empty() ? "" : ": " + preload.note));
  }
  void program() {
    if (!facts_.program) return;
    const Program& program = *facts_.program;
    std::vector<std::string> chain = program.chain;
    chain.push_back(program.path);
    row("program", analysis::join(chain, " -> "));
    row("program", program.library                  ? "a library: what loads it decides whether it is watched"
                   : !program.found || !program.elf ? "no program that can be read"
                   : program.blind.empty()          ? "libkshim.so can be preloaded into it"
                                                    : "blind: " + program.blind);
    for (const Library& found : program.libraries) library("program", found);
  }

  const Facts& facts_;
  Page page_;
  bool unicode_;
  std::string last_;
};

}  // namespace

std::string render_text(const Facts& facts, const analysis::RenderOptions& options) {
  return Writer(facts, options).write();
}

}  // namespace kshim::doctor
