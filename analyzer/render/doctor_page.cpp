// SPDX-License-Identifier: Apache-2.0
// A machine for people: what is wrong first, then what there is. As Markdown it is a block to paste into an
// issue.
#include "analyzer/core/text.h"
#include "analyzer/render/document.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/doctor.h"

namespace kshim::doctor {
namespace {

std::string name_of(image::Version version) {
  return version.known() ? std::string(image::to_name(version).view()) : "?";
}

class MachineWriter {
 public:
  MachineWriter(const Facts& facts, Document& document) : facts_(facts), doc_(document) {}

  void write() {
    doc_.title("kshim doctor");
    checks();
    system();
    gpus();
    driver();
    toolkits();
    pythons();
    coverage();
    for (const Library& found : facts_.libraries) library("loads", found);
    if (facts_.libraries.empty()) row("loads", "none of CUDA's libraries by name alone");
    for (const Preload& preload : facts_.preloads)
      row("preload", preload.path + (preload.note.empty() ? "" : ": " + preload.note));
    if (facts_.program) program(*facts_.program);
    doc_.gap();
    doc_.facts(std::move(rows_));
  }

 private:
  /// A label in front of the first of several rows.
  void row(const std::string& label, std::string text) {
    rows_.push_back({label == last_ ? std::string() : label, {{std::move(text)}}});
    last_ = label;
  }

  void checks() {
    const bool wrong = std::ranges::any_of(
        facts_.checks, [](const Check& check) { return check.severity >= Severity::warning; });
    const bool no_driver =
        std::ranges::any_of(facts_.checks, [](const Check& check) { return check.id == "no-libcuda"; });
    if (!wrong && no_driver)
      doc_.say(Tone::strong,
               "no GPU:", "CUDA programs find no GPU on this machine; `kshim run --simulate` gives them one");
    else if (!wrong)
      doc_.say(Tone::good, "ok:", "nothing here gets in the way of CUDA programs or of libkshim.so");
    for (const Check& check : facts_.checks) {
      const bool note = check.severity == Severity::info;
      const Tone tone = note ? Tone::strong : check.severity == Severity::error ? Tone::error : Tone::warning;
      doc_.say(tone, note ? "note:" : fmt::format("{}:", to_name(check.severity)), check.text);
      if (!check.advice.empty()) doc_.paragraph({{check.advice}}, 2);
    }
  }
  void system() {
    const System& system = facts_.system;
    std::vector<std::string> parts;
    for (const std::string& part : {system.os, system.kernel, system.machine})
      if (!part.empty()) parts.push_back(part);
    if (!system.glibc.empty()) parts.push_back("glibc " + system.glibc);
    if (!doc_.terminal() && facts_.place.container) parts.emplace_back("in a container");
    if (!doc_.terminal() && facts_.place.wsl) parts.emplace_back("WSL");
    if (!parts.empty()) row("system", join(parts, ", "));
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
      text += fmt::format("{}for CUDA {} and PTX {} and older (by {})", text.empty() ? "" : ", ",
                          name_of(driver.cuda), name_of(driver.isa), driver.asked);
    row("driver", text.empty() ? "none" : text);
  }
  void toolkits() {
    for (const Toolkit& toolkit : facts_.toolkits)
      row("toolkit", fmt::format("{} in {} ({}{})", name_of(toolkit.version), toolkit.folder,
                                 join(toolkit.known_by, ", "), toolkit.compiler ? "" : "; no nvcc"));
    for (const Compiler& compiler : facts_.compilers)
      row("compiler", fmt::format("{}{}{}: {} (by {})", compiler.program, compiler.version.empty() ? "" : " ",
                                  compiler.version, compiler.path, compiler.known_by));
  }
  void pythons() {
    for (const Python& python : facts_.pythons) {
      std::vector<std::string> wheels;
      for (const PythonWheel& wheel : python.wheels) wheels.push_back(wheel.name + " " + wheel.version);
      const std::string how = python.manager.empty() ? std::string() : " (" + python.manager + ")";
      row("Python", fmt::format("{} {}{}: {}", python.interpreter, python.version, how,
                                wheels.empty() ? "none of CUDA's packages" : join(wheels, ", ")));
    }
  }
  void coverage() {
    for (const PackageCoverage& package : facts_.coverage) {
      std::string text = fmt::format("{}: {}", package.package.empty() ? "no package" : package.package,
                                     join(package.archs, " "));
      for (const GpuCoverage& gpu : package.gpus)
        text += fmt::format("; runs on {}: {}", image::to_name(gpu.cc).view(), coverage_text(gpu));
      row("built for", text);
    }
  }
  void library(const std::string& label, const Library& library) {
    const bool link = library.file.real != library.file.path;
    row(label, fmt::format("{}: {}{} (by {})", library.name, library.file.path,
                           link && !library.version.empty() ? ", " + library.version : "", library.file.how));
  }
  void program(const Program& program) {
    std::vector<std::string> chain = program.chain;
    chain.push_back(program.path);
    row("program", join(chain, " -> "));
    row("program", program.library                  ? "a library: what loads it decides whether it is watched"
                   : !program.found || !program.elf ? "no program that can be read"
                   : program.blind.empty()          ? "libkshim.so can be preloaded into it"
                                                    : "blind: " + program.blind);
    for (const Library& found : program.libraries) library("program", found);
    if (!doc_.terminal())
      for (const std::string& missing : program.missing) row("not found", missing);
  }

  const Facts& facts_;
  Document& doc_;
  std::vector<Fact> rows_;
  std::string last_;
};

}  // namespace

std::string render_page(const Facts& facts, Format format, const RenderOptions& options) {
  return write_document(format, "kshim doctor", options, {},
                        [&](Document& document) { MachineWriter(facts, document).write(); });
}

std::string coverage_text(const GpuCoverage& gpu) {
  if (gpu.files == 0) return "no kernels";
  if (gpu.run == 0) return "no";
  const std::string how = gpu.jit != 0 ? " (compiled from PTX)" : "";
  if (gpu.run == gpu.files) return "yes" + how;
  return fmt::format("{} of {} files{}", gpu.run, gpu.files, how);
}

namespace {

Json to_json(const Library& library) {
  return {{"name", library.name},
          {"path", library.file.path},
          {"file", library.file.real},
          {"how", library.file.how},
          {"version", text_or_null(library.version)}};
}

Json to_json(const Gpu& gpu) {
  return {{"name", text_or_null(gpu.name)},
          {"compute_capability", gpu.cc ? Json(image::to_name(*gpu.cc).view()) : Json(nullptr)},
          {"compute_capability_by", !gpu.cc ? Json(nullptr) : Json(gpu.cc_by_name ? "name" : "driver")},
          {"uuid", text_or_null(gpu.uuid)},
          {"pci", text_or_null(gpu.pci)},
          {"mig", gpu.mig},
          {"simulated", gpu.simulated}};
}

Json to_json(const Python& python) {
  Json out = {{"interpreter", python.interpreter},
              {"version", text_or_null(python.version)},
              {"manager", text_or_null(python.manager)}};
  out["wheels"] = json_list(python.wheels, [](const PythonWheel& wheel) {
    return Json{{"name", wheel.name}, {"version", text_or_null(wheel.version)}};
  });
  out["library_folders"] = python.library_folders;
  return out;
}

Json to_json(const PackageCoverage& package) {
  Json out = {{"package", text_or_null(package.package)}, {"files", package.files}, {"archs", package.archs}};
  out["gpus"] = json_list(package.gpus, [](const GpuCoverage& gpu) {
    return Json{{"compute_capability", image::to_name(gpu.cc).view()},
                {"files", gpu.files},
                {"run", gpu.run},
                {"jit", gpu.jit}};
  });
  return out;
}

Json to_json(const Program& program) {
  Json out = {{"path", program.path},
              {"found", program.found},
              {"library", program.library},
              {"scripts", program.chain},
              {"blind", text_or_null(program.blind)}};
  out["libraries"] = json_list(program.libraries, [](const Library& library) { return to_json(library); });
  out["missing"] = program.missing;
  out["dlmopen"] = program.dlmopen;
  return out;
}

}  // namespace

std::string render_json(const Facts& facts) {
  Json out = {{"schema", "kshim-doctor/1"}};
  out["gpus"] = json_list(facts.gpus, [](const Gpu& gpu) { return to_json(gpu); });
  out["driver"] = {{"kernel_module", text_or_null(facts.driver.kernel_module)},
                   {"cuda_version", version_or_null(facts.driver.cuda)},
                   {"ptx_isa", version_or_null(facts.driver.isa)},
                   {"source", text_or_null(facts.driver.asked)}};
  out["toolkits"] = json_list(facts.toolkits, [](const Toolkit& toolkit) {
    return Json{{"path", toolkit.folder},
                {"version", version_or_null(toolkit.version)},
                {"known_by", toolkit.known_by},
                {"compiler", toolkit.compiler}};
  });
  out["compilers"] = json_list(facts.compilers, [](const Compiler& compiler) {
    return Json{{"program", compiler.program},
                {"path", compiler.path},
                {"version", text_or_null(compiler.version)},
                {"known_by", compiler.known_by}};
  });
  out["pythons"] = json_list(facts.pythons, [](const Python& python) { return to_json(python); });
  out["system"] = {{"os", text_or_null(facts.system.os)},
                   {"kernel", text_or_null(facts.system.kernel)},
                   {"machine", text_or_null(facts.system.machine)},
                   {"glibc", text_or_null(facts.system.glibc)}};
  out["coverage"] =
      json_list(facts.coverage, [](const PackageCoverage& package) { return to_json(package); });
  out["libraries"] = json_list(facts.libraries, [](const Library& library) { return to_json(library); });
  out["preloads"] = json_list(facts.preloads, [](const Preload& preload) {
    return Json{{"path", preload.path}, {"there", preload.there}, {"note", text_or_null(preload.note)}};
  });
  out["place"] = {{"container", facts.place.container},
                  {"wsl", facts.place.wsl},
                  {"device_nodes", facts.place.device_nodes},
                  {"pci", facts.place.pci}};
  out["program"] = facts.program ? to_json(*facts.program) : Json(nullptr);
  out["findings"] = json_list(facts.checks, [](const Check& check) {
    return Json{{"id", check.id},
                {"severity", to_name(check.severity)},
                {"text", check.text},
                {"advice", text_or_null(check.advice)}};
  });
  add_knowledge(out);
  return dumped(out);
}

}  // namespace kshim::doctor
