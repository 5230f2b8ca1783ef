// SPDX-License-Identifier: Apache-2.0
// mixed-cuda-libraries and cudnn-mismatch: what the mapped libraries are, against what failed.
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::diagnose {
using core::basename_of;
using core::Cause;
using core::EvidenceId;
using core::Finding;
using core::Severity;
using input::CudaLibrary;

namespace {

constexpr double kOnItsStack = 0.75;   // the failing call came out of one of the libraries
constexpr double kNothingElse = 0.45;  // it did not, and nothing else explains it
constexpr std::size_t kMaxUsers = 3;

std::vector<image::ComputeCapability> devices_of(const Scene& scene) {
  std::vector<image::ComputeCapability> out;
  if (scene.options.assume_cc) return {*scene.options.assume_cc};
  for (const input::DeviceRecord& row : scene.report.devices) {
    if (const auto cc = cc_of(scene, &row)) out.push_back(*cc);
  }
  return out;
}

/// The failures of the report that nothing explains so far, and what is to be said of them.
struct Unexplained {
  const input::FailureRecord* failure = nullptr;
  int code = 0;
  Cause cause = Cause::unknown;
};

int code_of(const input::FailureRecord& failure) {
  for (const input::Layer& layer : failure.layers) {
    if (layer.code != 0) return layer.code;
  }
  return 0;
}

std::vector<Unexplained> unexplained_of(const std::vector<Judged>& judged) {
  std::vector<Unexplained> out;
  for (const Judged& row : judged) {
    const int code = code_of(*row.failure);
    const bool weak = row.confidence < kOwnGround && may_be_library_conflict(code);
    if (row.cause == Cause::unknown || weak) out.push_back({row.failure, code, row.cause});
  }
  return out;
}

// Whether the failing call came out of one of the libraries, or out of one of their family.
bool is_on_stack(const Scene& scene, const input::FailureRecord& failure,
                 const std::vector<CudaLibrary>& libraries) {
  const auto is_of = [&](const std::string& path) {
    const std::string_view name = basename_of(path);
    return std::ranges::any_of(libraries, [&](const CudaLibrary& library) {
      const std::string_view family =
          library.family.starts_with("cudnn") ? std::string_view("cudnn") : library.family;
      return path == library.record.path || (name.starts_with("lib") && name.substr(3).starts_with(family));
    });
  };
  const input::ObjectRecord* object = scene.index.object(failure.object);
  if (object != nullptr && is_of(object->path)) return true;
  return std::ranges::any_of(failure.native,
                             [&](const input::NativeFrame& frame) { return is_of(frame.object); });
}

// The files that list it as needed, of those that the report names and that are here.
std::vector<std::string> users_of(const Scene& scene, const CudaLibrary& library) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& path, const std::string& build_id) {
    if (out.size() == kMaxUsers || path == library.record.path) return;
    if (!build_id.empty() && device_code::build_id_of(path) != build_id) return;
    const auto file = device_code::elf_facts(path);
    if (!file || !core::contains(file->needed, library.record.soname)) return;
    const std::string name(basename_of(path));
    if (!core::contains(out, name)) out.push_back(name);
  };
  for (const input::ObjectRecord& row : scene.report.objects) add(row.path, row.build_id);
  for (const input::LibraryRecord& row : scene.report.libraries) add(row.path, row.build_id);
  return out;
}

std::string env_of(const Scene& scene, const char* name) {
  const auto found = scene.report.process.env.find(name);
  return found == scene.report.process.env.end() ? std::string() : found->second;
}

void add_evidence(const Scene& scene, const LibraryMatch& match, const std::vector<CudaLibrary>& libraries,
                  Finding& out) {
  out.evidence.push_back(
      {EvidenceId::rule, match.because + ".", location(scene.report, libraries.front().record.line)});
  for (const CudaLibrary& library : libraries) {
    const std::vector<std::string> users = users_of(scene, library);
    out.evidence.push_back(
        {EvidenceId::library,
         fmt::format("{} is loaded from {}{}{}.", library.record.soname, library.path,
                     library.package.empty() ? "" : fmt::format(", of the package {}", library.package),
                     users.empty() ? ""
                                   : fmt::format("; {} {} it", core::enumerate(users),
                                                 users.size() == 1 ? "needs" : "need")),
         location(scene.report, library.record.line),
         {{"soname", library.record.soname}, {"path", library.path}, {"package", library.package}}});
  }
  const std::string search = env_of(scene, "LD_LIBRARY_PATH");
  if (!search.empty() && match.kind != LibraryConflictKind::dropped)
    out.evidence.push_back({EvidenceId::environment,
                            fmt::format("LD_LIBRARY_PATH={} is in the environment.", search),
                            location(scene.report, scene.report.process.line),
                            {{"variable", "LD_LIBRARY_PATH"}, {"value", search}}});
}

void set_conflict(const Scene& scene, const LibraryMatch& match, std::vector<CudaLibrary> libraries,
                  Finding& out) {
  Facts at;
  at.process.conflict = LibraryConflict{
      match.kind, std::move(libraries), env_of(scene, "LD_LIBRARY_PATH"), {}, env_of(scene, "CONDA_PREFIX")};
  const auto& driver = scene.report.driver;
  if (driver && driver->simulated)
    at.process.conflict->simulator = driver->path.substr(0, driver->path.rfind('/'));
  at.process.program = command_line_of(scene.report.process);
  if (match.kind == LibraryConflictKind::dropped) at.gpu.cc = match.device;
  for (const CudaLibrary& library : at.process.conflict->libraries) {
    if (!library.package.empty() && !at.process.python_env.known())
      at.process.python_env =
          owner::python_environment(library.real.empty() ? library.path : library.real, {}, false);
  }
  if (scene.report.foreign) {
    at.process.program.clear();
    at.process.python_env = {};
  }
  set_about(std::move(at), out);
}

// The failure becomes the finding's: its call, place and words, and the finding by its code alone goes.
void take_failure(const Unexplained& row, std::vector<Finding>& known, Finding& out) {
  const auto weak = std::ranges::find_if(known, [&](const Finding& finding) {
    return finding.cause == row.cause && finding.code == row.code && finding.severity == Severity::error;
  });
  if (weak == known.end()) return;
  out.code = weak->code;
  out.code_name = weak->code_name;
  out.failed_call = weak->failed_call;
  out.failed_kernel = weak->failed_kernel;
  out.count = weak->count;
  out.call_count = weak->call_count;
  out.devices = weak->devices;
  out.where = std::move(weak->where);
  if (!weak->evidence.empty()) out.evidence.insert(out.evidence.begin(), weak->evidence.front());
  known.erase(weak);
}

// Code of cuDNN itself lacks an image: the release, not the file, is what does not fit.
bool failed_in_cudnn(const std::vector<Finding>& known) {
  return std::ranges::any_of(known, [](const Finding& finding) {
    return finding.severity == Severity::error && basename_of(finding.object).starts_with("libcudnn");
  });
}

// Sets the severity by what failed.
void weigh(const Scene& scene, const LibraryMatch& match, const std::vector<CudaLibrary>& libraries,
           const std::vector<Unexplained>& unexplained, std::vector<Finding>& known, Finding& out) {
  out.severity = Severity::warning;
  out.confidence = match.confidence;
  for (const Unexplained& row : unexplained) {
    if (!is_on_stack(scene, *row.failure, libraries)) continue;
    out.severity = Severity::error;
    out.confidence = std::max(kOnItsStack, match.confidence);
    take_failure(row, known, out);
    return;
  }
  const auto by_code = std::ranges::find_if(unexplained, [&](const Unexplained& row) {
    return is_strong(match.kind) || may_be_library_conflict(row.code);
  });
  // A GPU that cuDNN dropped cannot explain a failed call outside cuDNN.
  if (by_code != unexplained.end() && match.kind != LibraryConflictKind::dropped) {
    out.severity = Severity::error;
    out.confidence = kNothingElse;
    out.evidence.push_back(
        {EvidenceId::unexplained_code,
         fmt::format("A call failed with {}, and nothing else explains it.", by_code->code),
         location(scene.report, by_code->failure->line),
         {{"code", std::to_string(by_code->code)}}});
    return;
  }
  if (match.kind == LibraryConflictKind::dropped && failed_in_cudnn(known)) {
    out.severity = Severity::error;
    return;
  }
}

}  // namespace

void add_library_findings(const Scene& scene, const std::vector<Judged>& judged,
                          std::vector<Finding>& known) {
  const std::vector<CudaLibrary> all = cuda_libraries(scene.report, scene.files);
  const std::vector<LibraryMatch> matches = judge_libraries(all, devices_of(scene));
  if (matches.empty()) return;
  const std::vector<Unexplained> unexplained = unexplained_of(judged);
  std::vector<Finding> found;
  for (const LibraryMatch& match : matches) {
    std::vector<CudaLibrary> libraries;
    for (const std::size_t index : match.libraries) libraries.push_back(all[index]);
    Finding out;
    out.cause = match.cause;
    out.headline = match.headline;
    out.object = libraries.front().record.path;
    add_evidence(scene, match, libraries, out);
    weigh(scene, match, libraries, unexplained, known, out);
    set_conflict(scene, match, std::move(libraries), out);
    merge_into(found, std::move(out));
  }
  for (Finding& finding : found) merge_into(known, std::move(finding));
}

Finding missing_library(const MissingLibrary& missing) {
  constexpr double kLinkerSays = 0.97;
  Finding out = new_finding(
      Cause::library_not_found, kLinkerSays,
      fmt::format("{1} needs {0}, which was not found", missing.name, basename_of(missing.needed_by)));
  out.object = missing.name;
  out.evidence.push_back({EvidenceId::library_missing,
                          fmt::format("{} exited with status 127 before main(), and the dynamic linker does "
                                      "not find {}, which {} needs.",
                                      basename_of(missing.program), missing.name, missing.needed_by),
                          {},
                          {{"library", missing.name}, {"needed_by", missing.needed_by}}});
  if (!missing.folder.empty())
    out.evidence.push_back(
        {EvidenceId::library_elsewhere,
         fmt::format("{} contains it, but the linker does not search that folder.", missing.folder),
         {},
         {{"folder", missing.folder}}});
  Facts at;
  at.process.missing = missing;
  set_about(std::move(at), out);
  return out;
}

// The runtime that a program is linked with statically answers 35 by itself: nothing asks the driver, and
// there is no report.
Finding no_driver(const std::string& program) {
  constexpr double kAllFits = 0.85;
  Finding out =
      new_finding(Cause::no_device, kAllFits,
                  fmt::format("{} contains GPU code, but libcuda.so.1 (the driver) is not installed",
                              basename_of(program)));
  out.object = program;
  out.evidence.push_back(
      {EvidenceId::library_missing,
       fmt::format(
           "{} failed, has device code of its own, and the dynamic linker finds no libcuda.so.1 here.",
           basename_of(program)),
       {},
       {{"library", "libcuda.so.1"}, {"needed_by", program}}});
  Facts at;
  at.call.code = core::kInsufficientDriver;
  at.file.path = program;
  set_about(std::move(at), out);
  return out;
}

}  // namespace kshim::diagnose
