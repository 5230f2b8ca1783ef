// SPDX-License-Identifier: Apache-2.0
// A machine for people: what is wrong first, then what there is. As Markdown it is a block to paste into an
// issue.
#include "analyzer/render/document.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/render.h"
#include "analyzer/render/scan/render.h"

namespace kshim::render {
using core::join;
using core::Tone;
using input::Check;
using input::Library;

namespace {

std::string name_of(image::Version version) { return version.known() ? name(version) : "?"; }

/// "4 of 9 files (compiled from PTX)".
std::string coverage_text(const RowVerdict& gpu) {
  const std::size_t run = gpu.files - gpu.files_none;
  if (gpu.files == 0) return "no kernels";
  if (run == 0) return "no";
  const std::string how = gpu.jit != 0 ? " (compiled from PTX)" : "";
  if (run == gpu.files) return "yes" + how;
  return fmt::format("{} of {} files{}", run, gpu.files, how);
}

std::vector<std::string> archs_of(const MatrixRow& row) {
  return core::mapped(row.images, [](const device_code::ImageCount& image) {
    return name(image.candidate.kind, image.candidate.arch);
  });
}

}  // namespace

void write_checks(const std::vector<Check>& checks, Document& to) {
  for (const Check& check : checks) {
    const bool note = check.severity == core::Severity::info;
    const Tone tone = note                                      ? Tone::strong
                      : check.severity == core::Severity::error ? Tone::error
                                                                : Tone::warning;
    to.say(tone, note ? "note:" : fmt::format("{}:", to_name(check.severity)), check.text);
    if (!check.advice.empty()) to.paragraph({{check.advice}}, 2);
  }
}

namespace {

struct MachineWriter {
  void write() {
    doc_.title("kshim doctor");
    if (facts_.process) row("process", fmt::format("{}: {}", facts_.process->pid, facts_.process->program));
    checks();
    system();
    gpus();
    driver();
    toolkits();
    pythons();
    coverage();
    const char* const loads = facts_.process ? "mapped" : "loads";
    for (const Library& found : facts_.libraries) library(loads, found);
    if (facts_.libraries.empty())
      row(loads, facts_.process ? "none of CUDA's libraries" : "none of CUDA's libraries by name alone");
    for (const input::Preload& preload : facts_.preloads)
      row("preload", preload.path + (preload.note.empty() ? "" : ": " + preload.note));
    if (facts_.program) program(*facts_.program);
    doc_.gap();
    doc_.facts(std::move(rows_));
  }

  /// A label in front of the first of several rows.
  void row(const std::string& label, std::string text) {
    rows_.push_back({label == last_ ? std::string() : label, {{std::move(text)}}});
    last_ = label;
  }

  void checks() {
    const bool wrong = std::ranges::any_of(
        facts_.checks, [](const Check& check) { return check.severity >= core::Severity::warning; });
    const bool no_driver =
        std::ranges::any_of(facts_.checks, [](const Check& check) { return check.id == "no-libcuda"; });
    if (!wrong && no_driver)
      doc_.say(Tone::strong,
               "no GPU:", "CUDA programs find no GPU on this machine; `kshim run --simulate` gives them one");
    else if (!wrong)
      doc_.say(Tone::good, "ok:", "nothing here gets in the way of CUDA programs or of libkshim.so");
    write_checks(facts_.checks, doc_);
  }
  void system() {
    const input::System& system = facts_.system;
    std::vector<std::string> parts = {system.os, system.kernel, system.machine};
    std::erase(parts, "");
    if (!system.glibc.empty()) parts.push_back("glibc " + system.glibc);
    if (!doc_.terminal() && facts_.place.container) parts.emplace_back("in a container");
    if (!doc_.terminal() && facts_.place.wsl) parts.emplace_back("WSL");
    if (!parts.empty()) row("system", join(parts, ", "));
  }
  void gpus() {
    for (const input::Gpu& gpu : facts_.gpus) {
      std::string text = gpu.name.empty() ? "an NVIDIA GPU" : gpu.name;
      if (gpu.cc)
        text += fmt::format(", compute capability {} (sm_{}{})", name(*gpu.cc), gpu.cc->number(),
                            gpu.cc_by_name ? "; by its name" : "");
      if (!gpu.pci.empty()) text += ", " + gpu.pci;
      if (gpu.mig) text += ", split (MIG)";
      if (facts_.driver.kernel_module.empty() && facts_.driver.asked.empty())
        text += ", and no driver to ask";
      row("GPU", text);
    }
    if (facts_.gpus.empty()) row("GPU", "none");
  }
  void driver() {
    const input::Driver& driver = facts_.driver;
    std::string text = driver.kernel_module;
    if (driver.cuda.known())
      text += fmt::format("{}for CUDA {} and PTX {} and older (by {})", text.empty() ? "" : ", ",
                          name_of(driver.cuda), name_of(driver.isa), driver.asked);
    row("driver", text.empty() ? "none" : text);
  }
  void toolkits() {
    for (const input::Toolkit& toolkit : facts_.toolkits)
      row("toolkit", fmt::format("{} in {} ({}{})", name_of(toolkit.version), toolkit.folder,
                                 join(toolkit.known_by, ", "), toolkit.compiler ? "" : "; no nvcc"));
    for (const input::Compiler& compiler : facts_.compilers)
      row("compiler", fmt::format("{}{}{}: {} (by {})", compiler.program, compiler.version.empty() ? "" : " ",
                                  compiler.version, compiler.path, compiler.known_by));
  }
  void pythons() {
    for (const input::Python& python : facts_.pythons) {
      const auto wheels = core::mapped(
          python.wheels, [](const input::PythonWheel& wheel) { return wheel.name + " " + wheel.version; });
      const std::string how = python.manager.empty() ? std::string() : " (" + python.manager + ")";
      row("Python", fmt::format("{} {}{}: {}", python.interpreter, python.version, how,
                                wheels.empty() ? "none of CUDA's packages" : join(wheels, ", ")));
    }
  }
  void coverage() {
    for (const MatrixRow& package : packages_) {
      std::string text = fmt::format("{}: {}", package.name, join(archs_of(package), " "));
      for (const RowVerdict& gpu : package.targets)
        text += fmt::format("; runs on {}: {}", name(gpu.target.cc), coverage_text(gpu));
      row("built for", text);
    }
  }
  void library(const std::string& label, const Library& library) {
    const bool link = library.file.real != library.file.path;
    row(label, fmt::format("{}: {}{} (by {})", library.name, library.file.path,
                           link && !library.version.empty() ? ", " + library.version : "", library.file.how));
  }
  void program(const input::Program& program) {
    std::vector<std::string> chain = program.chain;
    chain.push_back(program.path);
    row("program", join(chain, " -> "));
    row("program", program.library                  ? "a library: what loads it decides whether it is watched"
                   : !program.found || !program.elf ? "no program that can be read"
                   : program.blind.empty()          ? "libkshim.so can be preloaded into it"
                                                    : "blind: " + program.blind);
    for (const Library& found : program.libraries) library("program", found);
    if (!doc_.terminal())
      for (const input::Missing& missing : program.missing) row("not found", missing.text());
  }

  const input::MachineFacts& facts_;
  const std::vector<MatrixRow>& packages_;
  Document& doc_;
  std::vector<Fact> rows_ = {};
  std::string last_ = {};
};

}  // namespace

KSHIM_JSON(input::PythonWheel, name, version)
KSHIM_JSON(input::Compiler, program, path, version, known_by)
KSHIM_JSON(input::System, os, kernel, machine, glibc)
KSHIM_JSON(input::MachineEnvironment, container, wsl, device_nodes, pci)
KSHIM_JSON(input::Preload, path, there, note)

template <>
inline Json to_json(const RowVerdict& from) {
  return {{"compute_capability", json_of(from.target.cc)},
          {"files", from.files},
          {"run", from.files - from.files_none},
          {"jit", from.jit}};
}

template <>
inline Json to_json(const MatrixRow& from) {
  return {{"package", json_of(from.package)},
          {"files", from.files},
          {"archs", archs_of(from)},
          {"gpus", json_of(from.targets)}};
}

template <>
inline Json to_json(const Library& from) {
  return {{"name", from.name},
          {"path", from.file.path},
          {"file", from.file.real},
          {"how", from.file.how},
          {"version", json_of(from.version)}};
}

template <>
inline Json to_json(const input::Gpu& from) {
  Json out = {
      {"name", json_of(from.name)},
      {"compute_capability", json_of(from.cc)},
      {"compute_capability_by", !from.cc ? Json(nullptr) : Json(from.cc_by_name ? "name" : "driver")}};
  KSHIM_JSON_FIELDS(uuid, pci, mig, simulated)
  return out;
}

template <>
inline Json to_json(const input::Toolkit& from) {
  Json out = {{"path", from.folder}};
  KSHIM_JSON_FIELDS(version, known_by, compiler)
  return out;
}

template <>
inline Json to_json(const input::Python& from) {
  Json out;
  KSHIM_JSON_FIELDS(interpreter, version, manager, wheels, library_folders)
  return out;
}

template <>
inline Json to_json(const input::Program& from) {
  Json out;
  KSHIM_JSON_FIELDS(path, found, library)
  out["scripts"] = from.chain;
  KSHIM_JSON_FIELDS(blind, libraries)
  out["missing"] = core::mapped(from.missing, &input::Missing::text);
  return out;
}

template <>
inline Json to_json(const input::Driver& from) {
  return {{"kernel_module", json_of(from.kernel_module)},
          {"cuda_version", json_of(from.cuda)},
          {"ptx_isa", json_of(from.isa)},
          {"source", json_of(from.asked)}};
}

std::string rendered(const verbs::Examination& examined, Format format, const RenderOptions& options) {
  const input::MachineFacts& from = examined.machine;
  const std::vector<MatrixRow> packages = matrix_rows(examined.packages, true);
  if (format != Format::json)
    return write_document(format, "kshim doctor", options, {}, [&](Document& document) {
      MachineWriter{from, packages, document}.write();
    });
  Json out = {{"schema", "kshim-doctor/1"}};
  KSHIM_JSON_FIELDS(gpus, driver, toolkits, compilers, pythons, system)
  out["coverage"] = json_of(packages);
  KSHIM_JSON_FIELDS(libraries, preloads, place, program)
  if (from.process) out["process"] = json_of(*from.process);
  out["findings"] = json_of(from.checks);
  add_knowledge(out);
  return dumped(out);
}

}  // namespace kshim::render
