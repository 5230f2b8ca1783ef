// SPDX-License-Identifier: Apache-2.0
// One block to paste into an issue.
#include <fmt/core.h>

#include "analyzer/core/text.h"
#include "analyzer/render/markdown_page.h"
#include "analyzer/render/share.h"
#include "analyzer/verbs/doctor.h"

namespace kshim::doctor {
namespace {

using analysis::Line;

class Block {
 public:
  Block(const Facts& facts, bool full) : facts_(facts), full_(full), page_(false) {}

  std::string write() {
    system();
    gpus();
    for (const Toolkit& toolkit : facts_.toolkits)
      fact("CUDA toolkit",
           fmt::format("{} in {} ({}){}", version(toolkit.version), toolkit.folder,
                       analysis::join(toolkit.known_by, ", "), toolkit.compiler ? "" : ", no nvcc"));
    fact("nvcc", facts_.nvcc);
    fact("ptxas", facts_.ptxas);
    for (const Python& python : facts_.pythons) {
      std::vector<std::string> parts;
      for (const std::string& part : {python.interpreter, python.version, python.manager})
        if (!part.empty()) parts.push_back(part);
      fact("Python", analysis::join(parts, ", "));
      std::vector<std::string> wheels;
      for (const PythonWheel& wheel : python.wheels) wheels.push_back(wheel.name + " " + wheel.version);
      fact("packages", analysis::join(wheels, ", "));
    }
    if (facts_.program) program(*facts_.program);
    page_.heading(3, {{"kshim doctor"}});
    page_.table({}, rows_);
    coverage();
    checks();
    return std::move(page_).take();
  }

 private:
  static std::string version(image::Version version) {
    return version.known() ? std::string(image::to_name(version).view()) : "?";
  }
  std::string shared(const std::string& text) const { return analysis::for_sharing(text, full_); }
  void fact(const char* name, const std::string& text) {
    if (!text.empty()) rows_.push_back({{{name}}, {{shared(text)}}});
  }

  void system() {
    std::vector<std::string> parts;
    if (!facts_.system.os.empty()) parts.push_back(facts_.system.os);
    if (!facts_.system.kernel.empty())
      parts.push_back("Linux " + facts_.system.kernel + " " + facts_.system.machine);
    if (!facts_.system.glibc.empty()) parts.push_back("glibc " + facts_.system.glibc);
    if (facts_.place.container) parts.emplace_back("in a container");
    if (facts_.place.wsl) parts.emplace_back("WSL");
    fact("system", analysis::join(parts, ", "));
  }

  void gpus() {
    for (const Gpu& gpu : facts_.gpus)
      fact("GPU",
           fmt::format("{}{}{}", gpu.name.empty() ? "an NVIDIA GPU" : gpu.name,
                       gpu.cc ? fmt::format(", compute capability {}", image::to_name(*gpu.cc).view()) : "",
                       gpu.mig ? ", split (MIG)" : ""));
    if (facts_.gpus.empty()) fact("GPU", "none found");
    const Driver& driver = facts_.driver;
    fact("driver", driver.kernel_module.empty() && !driver.cuda.known()
                       ? "none found"
                       : fmt::format("{}{}", driver.kernel_module,
                                     driver.cuda.known() ? " for CUDA " + version(driver.cuda) : ""));
  }

  void program(const Program& program) {
    fact("program", program.path);
    if (!program.blind.empty()) fact("program", "libkshim.so cannot watch it: " + program.blind);
    for (const Library& library : program.libraries)
      fact("loads", library.file.real.empty() ? library.file.path : library.file.real);
    for (const std::string& missing : program.missing) fact("not found", missing);
  }

  void coverage() {
    if (facts_.coverage.empty()) return;
    std::vector<std::string> head = {"Package", "Built for"};
    for (const GpuCoverage& gpu : facts_.coverage.front().gpus)
      head.push_back(fmt::format("runs on {}", image::to_name(gpu.cc).view()));
    std::vector<std::vector<Line>> rows;
    for (const PackageCoverage& package : facts_.coverage) {
      std::vector<Line> row = {{{package.package.empty() ? "(no package)" : shared(package.package)}},
                               {{analysis::join(package.archs, " ")}}};
      for (const GpuCoverage& gpu : package.gpus) row.push_back({{coverage_text(gpu)}});
      rows.push_back(std::move(row));
    }
    page_.table(head, rows);
  }

  void checks() {
    std::vector<Line> items;
    for (const Check& check : facts_.checks)
      items.push_back({analysis::strong(std::string(analysis::to_name(check.severity))),
                       {": " + shared(check.text + (check.advice.empty() ? "" : " " + check.advice))}});
    if (!items.empty()) page_.list(items);
  }

  const Facts& facts_;
  bool full_;
  analysis::MarkdownPage page_;
  std::vector<std::vector<Line>> rows_;
};

}  // namespace

std::string render_markdown(const Facts& facts, const analysis::RenderOptions& options) {
  return Block(facts, options.full).write();
}

std::string coverage_text(const GpuCoverage& gpu) {
  if (gpu.files == 0) return "no kernels";
  if (gpu.run == 0) return "no";
  const std::string how = gpu.jit != 0 ? " (compiled from PTX)" : "";
  if (gpu.run == gpu.files) return "yes" + how;
  return fmt::format("{} of {} files{}", gpu.run, gpu.files, how);
}

}  // namespace kshim::doctor
