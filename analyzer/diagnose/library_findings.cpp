// SPDX-License-Identifier: Apache-2.0
// mixed-cuda-libraries and cudnn-mismatch: what the mapped libraries are, against what failed.
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/device_code/elf_facts.h"
#include "analyzer/device_code/object_file.h"
#include "analyzer/diagnose/advice_input.h"
#include "analyzer/diagnose/cudnn_choice.h"
#include "analyzer/diagnose/libraries.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/diagnose/report_findings.h"
#include "analyzer/input/report/cuda_library.h"
#include "analyzer/owner/python_environment.h"

namespace kshim::analysis {
namespace {

// A diagnosis below this has no ground but its code.
constexpr double kOwnGround = 0.55;
constexpr double kOnItsStack = 0.75;   // the failing call came out of one of the libraries
constexpr double kNothingElse = 0.45;  // it did not, and nothing else explains it
constexpr double kGaveUp = 0.85;       // of what the libraries by themselves are worth
constexpr std::size_t kMostUsers = 3;

std::vector<image::ComputeCapability> devices_of(const Scene& scene) {
  std::vector<image::ComputeCapability> out;
  if (scene.options.assume_cc) return {*scene.options.assume_cc};
  for (const DeviceRecord& row : scene.report.devices) {
    if (const auto cc = cc_of(scene, &row)) out.push_back(*cc);
  }
  return out;
}

/// The failures of the report that nothing explains so far, and what is to be said of them.
struct Unexplained {
  const FailureRecord* failure = nullptr;
  int code = 0;
  Cause cause = Cause::unknown;
};

int code_of(const FailureRecord& failure) {
  for (const Layer& layer : failure.layers) {
    if (layer.code != 0) return layer.code;
  }
  return 0;
}

std::vector<Unexplained> unexplained_of(const std::vector<Judged>& judged) {
  std::vector<Unexplained> out;
  for (const Judged& row : judged) {
    const int code = code_of(*row.failure);
    const bool weak = row.confidence < kOwnGround && may_come_of_mixture(code);
    if (row.cause == Cause::unknown || weak) out.push_back({row.failure, code, row.cause});
  }
  return out;
}

// Whether the failing call came out of one of the libraries, or out of one of their family.
bool is_on_stack(const Scene& scene, const FailureRecord& failure,
                 const std::vector<CudaLibrary>& libraries) {
  const auto is_of = [&](const std::string& path) {
    const std::string_view name = basename_of(path);
    return std::any_of(libraries.begin(), libraries.end(), [&](const CudaLibrary& library) {
      const std::string_view family =
          library.family.starts_with("cudnn") ? std::string_view("cudnn") : library.family;
      return path == library.record.path || (name.starts_with("lib") && name.substr(3).starts_with(family));
    });
  };
  const ObjectRecord* object = scene.index.object(failure.object);
  if (object != nullptr && is_of(object->path)) return true;
  return std::any_of(failure.native.begin(), failure.native.end(),
                     [&](const NativeFrame& frame) { return is_of(frame.object); });
}

// Who lists it as needed, of the files that the report names and that are here.
std::vector<std::string> users_of(const Scene& scene, const CudaLibrary& library) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& path, const std::string& build_id) {
    if (out.size() == kMostUsers || path == library.record.path) return;
    if (!build_id.empty() && build_id_of(path) != build_id) return;
    const auto file = elf_facts(path);
    if (!file ||
        std::find(file->needed.begin(), file->needed.end(), library.record.soname) == file->needed.end())
      return;
    const std::string name(basename_of(path));
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const ObjectRecord& row : scene.report.objects) add(row.path, row.build_id);
  for (const LibraryRecord& row : scene.report.libraries) add(row.path, row.build_id);
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
                     users.empty()
                         ? ""
                         : fmt::format("; {} {} it", enumerate(users), users.size() == 1 ? "needs" : "need")),
         location(scene.report, library.record.line),
         {{"soname", library.record.soname}, {"path", library.path}, {"package", library.package}}});
  }
  const std::string search = env_of(scene, "LD_LIBRARY_PATH");
  if (!search.empty() && match.kind != Mixture::dropped)
    out.evidence.push_back({EvidenceId::environment,
                            fmt::format("LD_LIBRARY_PATH={} is in the environment.", search),
                            location(scene.report, scene.report.process.line),
                            {{"variable", "LD_LIBRARY_PATH"}, {"value", search}}});
}

void set_conflict(const Scene& scene, const LibraryMatch& match, std::vector<CudaLibrary> libraries,
                  Finding& out) {
  AdviceInput at;
  at.cause = out.cause;
  at.conflict = LibraryConflict{match.kind,   std::move(libraries), env_of(scene, "LD_LIBRARY_PATH"), {},
                                match.shadow, match.wanted,         env_of(scene, "CONDA_PREFIX")};
  const auto& driver = scene.report.driver;
  if (driver && driver->simulated) at.conflict->simulator = driver->path.substr(0, driver->path.rfind('/'));
  at.program = program_of(scene.report.process);
  if (match.kind == Mixture::dropped) at.device = match.device;
  for (const CudaLibrary& library : at.conflict->libraries) {
    if (scene.report.foreign) at.foreign.push_back(library.record.path);
    if (!library.package.empty() && !at.python_env.known())
      at.python_env =
          packages::python_environment(library.real.empty() ? library.path : library.real, {}, false);
  }
  if (scene.report.foreign) {
    at.foreign.push_back(at.conflict->search_path);
    at.foreign.push_back(scene.report.process.exe);
    at.program.clear();
    at.python_env = {};
  }
  out.about = std::make_shared<const AdviceInput>(std::move(at));
}

// The failure becomes the finding's: its call, place and words, and the finding by its code alone goes.
void take_failure(const Unexplained& row, std::vector<Finding>& known, Finding& out) {
  const auto weak = std::find_if(known.begin(), known.end(), [&](const Finding& finding) {
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
  return std::any_of(known.begin(), known.end(), [](const Finding& finding) {
    return finding.severity == Severity::error && basename_of(finding.object).starts_with("libcudnn");
  });
}

bool any_error(const std::vector<Finding>& known) {
  return std::any_of(known.begin(), known.end(),
                     [](const Finding& finding) { return finding.severity == Severity::error; });
}

// Sets the severity by what failed; false for a suspicion that nothing bears out.
bool weigh(const Scene& scene, const LibraryMatch& match, const std::vector<CudaLibrary>& libraries,
           const std::vector<Unexplained>& unexplained, std::vector<Finding>& known, Finding& out) {
  out.severity = Severity::warning;
  out.confidence = match.confidence;
  for (const Unexplained& row : unexplained) {
    if (!is_on_stack(scene, *row.failure, libraries)) continue;
    out.severity = Severity::error;
    out.confidence = match.kind == Mixture::apart ? kOwnGround : std::max(kOnItsStack, match.confidence);
    take_failure(row, known, out);
    return true;
  }
  if (match.kind == Mixture::apart) return false;
  const bool gave_up = scene.options.term_signal || scene.options.exit_status.value_or(0) != 0;
  // Which parts the loader took is not known where the program went on.
  if (match.kind == Mixture::shadowed && !gave_up) return false;
  const auto by_code = std::find_if(unexplained.begin(), unexplained.end(), [&](const Unexplained& row) {
    return is_strong(match.kind) ? true : may_come_of_mixture(row.code);
  });
  // cuDNN and a GPU that it drops do nothing to a call of somebody else.
  if (by_code != unexplained.end() && match.kind != Mixture::dropped) {
    out.severity = Severity::error;
    out.confidence = kNothingElse;
    out.evidence.push_back(
        {EvidenceId::unexplained_code,
         fmt::format("A call failed with {}, and nothing else explains it.", by_code->code),
         location(scene.report, by_code->failure->line),
         {{"code", std::to_string(by_code->code)}}});
    return true;
  }
  if (match.kind == Mixture::dropped && failed_in_cudnn(known)) {
    out.severity = Severity::error;
    return true;
  }
  if (gave_up && is_strong(match.kind) && !any_error(known)) {
    out.severity = Severity::error;
    out.confidence = match.confidence * kGaveUp;
    out.evidence.push_back(
        {EvidenceId::ended_silently,
         fmt::format(
             "No call to CUDA failed that would explain why the program ended with {}: libraries refuse by a "
             "status of their own.",
             scene.options.term_signal ? fmt::format("signal {}", *scene.options.term_signal)
                                       : std::to_string(*scene.options.exit_status)),
         {}});
  }
  return true;
}

}  // namespace

void add_library_findings(const Scene& scene, const std::vector<Judged>& judged,
                          std::vector<Finding>& known) {
  const std::vector<CudaLibrary> all = cuda_libraries(scene.report, scene.files);
  std::vector<LibraryMatch> matches = judge_libraries(all, devices_of(scene));
  add_cudnn_choice(scene, all, matches);
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
    if (!weigh(scene, match, libraries, unexplained, known, out)) continue;
    set_conflict(scene, match, std::move(libraries), out);
    merge_into(found, std::move(out));
  }
  for (Finding& finding : found) merge_into(known, std::move(finding));
}

}  // namespace kshim::analysis
