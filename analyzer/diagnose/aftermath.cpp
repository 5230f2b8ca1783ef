// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/aftermath.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/failure_finding.h"

namespace kshim::diagnose {
using core::basename_of;
using core::Cause;
using core::EvidenceId;
using core::Finding;
using core::Severity;
using input::DeviceRecord;
using input::FailureRecord;
using input::LibraryRecord;
using input::ObjectRecord;

namespace {

constexpr double kReadByAnother = 0.9;
constexpr double kSeenUnread = 0.6;     // the most that the contract allows: the error may have been returned
constexpr double kUnseen = 0.4;         // a static runtime does not show which caller asks
constexpr double kGaveUp = 0.5;         // that it was called cannot be seen
constexpr double kNothingServes = 0.6;  // nor that it was, but nothing else that is mapped serves the GPU
constexpr double kAskedInVain = 0.8;

std::string path_of(const Scene& scene, std::optional<std::uint64_t> id) {
  const ObjectRecord* object = scene.index.object(id);
  return object != nullptr ? object->path : std::string();
}

// The file whose code made the failing call, by the stack; else the one that the failure names.
std::string prober_of(const Scene& scene, const FailureRecord& failure) {
  for (const input::NativeFrame& frame : failure.native) {
    if (data::find_probing_library(frame.object) != nullptr) return frame.object;
  }
  return path_of(scene, failure.object);
}

const Judged* judged_with(const std::vector<Judged>& judged, std::uint64_t id) {
  const auto found = std::ranges::find_if(judged, [&](const Judged& row) { return row.failure->id == id; });
  return found == judged.end() ? nullptr : &*found;
}

void set_code(int code, Finding& out) {
  out.code = code;
  const CudaError* error = find_cuda_error(code);
  if (error != nullptr && error->runtime_name != nullptr) out.code_name = error->runtime_name;
}

Finding stale_error(const Scene& scene, const input::ReadRecord& read, const FailureRecord& left) {
  const std::string prober = prober_of(scene, left);
  const std::string reader = path_of(scene, read.object);
  const std::string_view who = prober.empty() ? std::string_view("a library") : basename_of(prober);
  Finding out = new_finding(
      Cause::stale_error, kReadByAnother,
      fmt::format("{1} reports error {0}, which {2} left behind after a harmless probe", read.code,
                  reader.empty() ? std::string_view("the program") : basename_of(reader), who));
  set_code(static_cast<int>(read.code), out);
  out.object = prober;
  out.failed_call = read.api;
  FailureRecord place;
  place.native = read.native;
  place.python = read.python;
  out.where = own_places(place, scene.report, scene.files);
  out.evidence.push_back({EvidenceId::failed_call,
                          fmt::format("{} answered {}{}.", read.api, read.code,
                                      reader.empty() ? "" : fmt::format(" to {}", basename_of(reader))),
                          location(scene.report, read.line),
                          {{"call", read.api}, {"code", std::to_string(read.code)}}});
  out.evidence.push_back(
      {EvidenceId::left_error,
       fmt::format("{} of {} had failed with it before, as a probe that {} went on from.",
                   left.layers.empty() ? std::string("a call") : left.layers.back().api, who, who),
       location(scene.report, left.line)});
  Facts at;
  at.package.software = who;
  at.call.caller = reader.empty() ? "the program" : std::string(basename_of(reader));
  set_about(std::move(at), out);
  return out;
}

// A static runtime shows the look-up that a launch begins with.
bool is_launch_failure(const Scene& scene, const Judged& row) {
  if (!is_image_cause(row.cause) && row.cause != Cause::launch_resources) return false;
  return row.failure->stage == "launch" || launched_by_stub(*row.failure, scene.files);
}

// A launch of the reader's own code failed as well: then the error may be its own.
bool has_own_failure(const Scene& scene, const std::vector<Judged>& judged, const std::string& reader) {
  return std::ranges::any_of(judged, [&](const Judged& row) {
    return is_image_cause(row.cause) && path_of(scene, row.failure->object) == reader;
  });
}

bool shows_reads(const FailureRecord& failure) {
  return std::ranges::any_of(failure.layers,
                             [](const input::Layer& layer) { return layer.layer == "runtime"; });
}

/// The images of a library that has none for the device, or none but of helpers.
struct LackingLibrary {
  InReport subject;
  ModuleShare modules;  ///< where some are served
};
std::optional<LackingLibrary> without_code(const Scene& scene, const ObjectRecord& object,
                                           const DeviceRecord& device, image::ComputeCapability cc) {
  const device_code::ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return std::nullopt;
  LackingLibrary out;
  InReport& subject = out.subject;
  subject.object = &object;
  subject.device = &device;
  bool fits = false;
  for (const device_code::ImageCount& row : file->image_counts()) {
    fits = fits || image::judge(row.candidate, {cc, driver_of(scene), {}}).fits;
    subject.facts.images.list.push_back({.candidate = row.candidate, .count = row.count});
  }
  if (subject.facts.images.list.empty()) return std::nullopt;
  if (fits) {
    if (data::find_vendor_library(object.path) == nullptr) return std::nullopt;
    const auto gap = scene.file_gaps.find(object, *file, cc, driver_of(scene));
    if (gap == nullptr || !serves_by_helpers(gap->modules)) return std::nullopt;
    subject.facts.images.list = gap->images;
    out.modules = gap->modules;
  }
  set_facts(scene, subject);
  return out;
}

/// Whether anything that is mapped has code for one of the GPUs.
bool is_served(const Scene& scene) {
  const auto serves = [&](const std::string& path, const std::string& build_id) {
    const ObjectRecord object = input::object_record(path, build_id);
    const device_code::ObjectFile* file = scene.files.find(object);
    if (file == nullptr || file->image_counts().empty()) return false;
    return std::ranges::any_of(scene.report.devices, [&](const DeviceRecord& device) {
      const auto cc = cc_of(scene, &device);
      return cc && !without_code(scene, object, device, *cc);
    });
  };
  return std::ranges::any_of(scene.report.libraries,
                             [&](const LibraryRecord& row) { return serves(row.path, row.build_id); }) ||
         std::ranges::any_of(scene.report.objects,
                             [&](const ObjectRecord& row) { return serves(row.path, row.build_id); });
}

/// `asked`: a look-up of the library's own that failed, in a process that has run nothing: then its module
/// decides. nullptr: all of the library.
std::optional<Finding> refusal_of(const Scene& scene, const LibraryRecord& library,
                                  const DeviceRecord& device, const FailureRecord* asked) {
  const auto cc = cc_of(scene, &device);
  const auto about = device_of(scene, &device);
  if (!cc || !about || data::find_vendor_library(library.path) == nullptr) return std::nullopt;
  ObjectRecord object = input::object_record(library.path, library.build_id);
  object.line = library.line;
  std::optional<LackingLibrary> lacking = without_code(scene, object, device, *cc);
  std::optional<InReport> subject;
  if (lacking) subject = std::move(lacking->subject);
  if (!lacking && asked != nullptr && path_of(scene, asked->object) == library.path)
    subject = subject_of(scene, *asked);
  if (!subject) return std::nullopt;
  const std::string_view name = basename_of(library.path);
  const std::string device_text = text_of(*about);
  const std::size_t served = lacking ? lacking->modules.served : 0;
  const std::string what = served != 0 ? fmt::format("hardly any code ({} of {} modules)", served,
                                                     served + lacking->modules.lacking)
                                       : "no code";
  Finding out = new_finding(Cause::library_refuses, kGaveUp,
                            fmt::format("{} has {} for {}, {}", name, what, device_text,
                                        ended_well(scene) ? "and the program used no kernel"
                                                          : "which may be why the program gave up"));
  // How a program ended accuses no library: it has reasons of its own.
  out.severity = Severity::warning;
  out.object = library.path;
  if (const auto package = package_of(scene, object)) out.package = package_name(*package);
  out.devices.push_back(*about);
  out.need = sm_name(*cc);
  describe_images(subject->facts, out);
  out.evidence.push_back(
      {EvidenceId::library,
       fmt::format("{} was loaded, and {} {} for {}.", name,
                   lacking ? "has" : "the module that it looked into has", what, device_text),
       location(scene.report, library.line),
       {{"path", library.path}}});
  set_about(scene, *subject, out);
  return out;
}

// Triton looks at the GPU before it compiles, and refuses it by an exception of its own.
std::optional<Finding> triton_refusal(const Scene& scene) {
  const auto& libraries = scene.report.libraries;
  const auto library = std::ranges::find_if(
      libraries, [](const LibraryRecord& row) { return basename_of(row.path).starts_with("libtriton."); });
  if (library == libraries.end()) return std::nullopt;
  Finding out = new_finding(Cause::library_refuses, kGaveUp);
  out.severity = Severity::warning;
  Facts at;
  for (const DeviceRecord& device : scene.report.devices) {
    const auto cc = cc_of(scene, &device);
    if (!cc || data::library_supports("torch.compile", "", *cc) != data::Support::too_old_gpu)
      return std::nullopt;
    at.gpu.cc = cc;
    if (const auto about = device_of(scene, &device)) out.devices.push_back(*about);
  }
  if (out.devices.empty()) return std::nullopt;
  out.object = library->path;
  out.headline = fmt::format("Triton does not compile for {}, which may be why the program gave up",
                             text_of(out.devices.front()));
  out.evidence.push_back({EvidenceId::library,
                          fmt::format("{} was loaded, but PyTorch does not use it on GPUs as old as {}.",
                                      basename_of(library->path), name(*at.gpu.cc)),
                          location(scene.report, library->line),
                          {{"path", library->path}}});
  at.package.name = at.package.software = "triton";
  at.file.path = library->path;
  set_about(std::move(at), out);
  return out;
}

/// By its exit status, or by abort(), which an exception that nobody catches ends in. Unknown where nobody
/// saw it.
std::optional<bool> gave_up(const Ending& ending) {
  constexpr int kAbort = 6;
  if (ending.signal) return *ending.signal == kAbort;
  if (ending.status) return *ending.status != 0;
  return std::nullopt;
}

/// Whether code for the GPU was loaded: such a program gave up for another reason. What the driver selects of
/// a file, the shim does not look at.
bool has_run(const Scene& scene) {
  return std::ranges::any_of(scene.report.modules, [](const input::ModuleRecord& row) {
    const bool of_file = row.api == "cuModuleLoad" || row.api == "cuLibraryLoadFromFile";
    return row.result == 0 && (of_file || !row.selected.empty());
  });
}

/// A look-up of the library's own that found no image. Such a library looks up what the GPU may lack, so the
/// failure alone tells nothing; nullptr where there is none.
const FailureRecord* failed_look_up(const std::vector<Judged>& judged, const std::string& library) {
  constexpr int kNoImage = 209;
  for (const Judged& row : judged) {
    const FailureRecord& failure = *row.failure;
    if (row.cause == Cause::benign_probe && !failure.layers.empty() && failure.layers[0].code == kNoImage &&
        std::ranges::any_of(failure.native,
                            [&](const input::NativeFrame& frame) { return frame.object == library; }))
      return &failure;
  }
  return nullptr;
}

void add_look_up(const Scene& scene, const FailureRecord& failure, Finding& out) {
  const input::Layer& layer = failure.layers[0];
  out.severity = Severity::error;
  out.confidence = kAskedInVain;
  out.headline = fmt::format("{} found no code for {} when it looked up its own kernel",
                             basename_of(out.object), text_of(out.devices.front()));
  set_code(layer.code, out);
  out.failed_call = layer.api;
  out.failed_kernel = core::demangle(failure.kernel);
  out.where = own_places(failure, scene.report, scene.files);
  out.evidence.push_back({EvidenceId::failed_call,
                          fmt::format("{} of the library itself failed with {}.", layer.api, layer.code),
                          location(scene.report, failure.line),
                          {{"call", layer.api}, {"code", std::to_string(layer.code)}}});
}

constexpr double kBuiltByNewer = 0.9;
constexpr double kOlderThanSome = 0.6;

// The toolkit that built the program's own device code; a static runtime is of it.
image::Version runtime_of(const std::string& exe, input::ObjectFiles& files) {
  if (exe.empty()) return {};
  const ObjectRecord object = input::object_record(exe, device_code::build_id_of(exe));
  return find_images({&object, std::nullopt, nullptr, {}}, files).toolkit;
}

}  // namespace

std::vector<Finding> stale_errors(const Scene& scene, const std::vector<Judged>& judged) {
  std::vector<Finding> out;
  for (const input::ReadRecord& read : scene.report.reads) {
    const Judged* left = judged_with(judged, read.failure);
    if (left == nullptr || left->cause != Cause::benign_probe) continue;
    // A caller that probes may well look at what came of it.
    const std::string reader = path_of(scene, read.object);
    if (data::find_probing_library(reader) != nullptr || reader == prober_of(scene, *left->failure)) continue;
    if (ended_well(scene) || has_own_failure(scene, judged, reader)) continue;
    merge_into(out, stale_error(scene, read, *left->failure));
  }
  return out;
}

std::optional<Finding> unchecked_failure(const Scene& scene, const std::vector<Judged>& judged) {
  const Ending ending = ending_of(scene.report, scene.run);
  if (!ending.known() || ending.failed()) return std::nullopt;
  std::optional<Finding> out;
  for (const Judged& row : judged) {
    if (!is_launch_failure(scene, row)) continue;
    const FailureRecord& failure = *row.failure;
    // One check after several launches is a check of them all.
    const bool read = std::ranges::any_of(scene.report.reads, [&](const input::ReadRecord& record) {
      return record.failure == failure.id || (record.line > failure.line && !failure.layers.empty() &&
                                              static_cast<int>(record.code) == failure.layers.back().code);
    });
    if (read) continue;
    const bool visible = shows_reads(failure);
    Finding found = new_finding(Cause::unchecked_failure, visible ? kSeenUnread : kUnseen);
    set_code(failure.layers.empty() ? 0 : failure.layers.back().code, found);
    found.object = path_of(scene, failure.object);
    found.failed_kernel = core::demangle(failure.kernel);
    found.where = own_places(failure, scene.report, scene.files);
    found.evidence.push_back({EvidenceId::launch_unchecked,
                              fmt::format("{} failed to launch, and the exit status is 0.",
                                          failure.kernel.empty() ? std::string("A kernel")
                                                                 : core::shorten(found.failed_kernel, 60)),
                              location(scene.report, failure.line)});
    found.evidence.push_back(
        {EvidenceId::error_unread,
         visible
             ? "The program did not read the error afterwards (cudaGetLastError, cudaPeekAtLastError)."
             : "The runtime is linked statically, so kshim cannot see whether the program checked the error.",
         {}});
    if (out) continue;  // one is enough to distrust the results
    set_about({}, found);
    out = std::move(found);
  }
  return out;
}

std::optional<Finding> refusing_library(const Scene& scene, const std::vector<Judged>& judged,
                                        const std::vector<Finding>& known) {
  const bool told = std::ranges::any_of(
      known, [](const Finding& finding) { return finding.severity >= Severity::warning; });
  const Ending ending = ending_of(scene.report, scene.run);
  const std::optional<bool> gives_up = gave_up(ending);
  const bool ran = has_run(scene);
  // What came to its end without a kernel did not have to say what a library answered.
  const bool idle = ending.status == 0 && !ran && scene.report.driver;
  if (told || (gives_up == false && !idle)) return std::nullopt;
  const bool nothing_serves = !ran && gives_up && !is_served(scene);
  const bool surely_asked = !gives_up || ran || (idle && !nothing_serves);
  std::optional<Finding> out = surely_asked || idle ? std::nullopt : triton_refusal(scene);
  const bool triton = out.has_value();
  for (const LibraryRecord& library : scene.report.libraries) {
    if (triton) break;
    const FailureRecord* asked = failed_look_up(judged, library.path);
    if (surely_asked && asked == nullptr) continue;
    std::optional<Finding> found;
    for (const DeviceRecord& device : scene.report.devices) {
      found = refusal_of(scene, library, device, ran ? nullptr : asked);
      if (!found) break;
    }
    if (!found) continue;
    if (nothing_serves) found->confidence = kNothingServes;
    if (asked != nullptr) add_look_up(scene, *asked, *found);
    if (!out) {
      out = std::move(found);
    } else {
      out->evidence.push_back(std::move(found->evidence.front()));  // it comes with the first, as a rule
    }
  }
  if (out && idle) {
    out->severity = std::min(out->severity, Severity::warning);  // it went on without
  } else if (out && gives_up) {
    out->evidence.push_back(
        {EvidenceId::ended_silently,
         fmt::format("The program ended with {}, and no call of CUDA failed: such a library reports an "
                     "unsupported GPU by its own status code.",
                     ending.text()),
         {}});
  }
  return out;
}

std::optional<Finding> idle_driver(const IdleProcess& process,
                                   const std::optional<image::ComputeCapability>& device,
                                   input::ObjectFiles& files) {
  const image::Version runtime = runtime_of(process.exe, files);
  const bool newer = runtime.known() && runtime.major > process.driver.major;
  // Nothing is newer than a driver for the newest toolkit.
  if (!newer && process.driver.major >= data::toolkits().back().version.major) return std::nullopt;
  Finding out = new_finding(Cause::driver_too_old, newer ? kBuiltByNewer : kOlderThanSome);
  if (newer) out.object = process.exe;
  const std::string who =
      process.exe.empty() ? std::string("a process") : std::string(basename_of(process.exe));
  out.evidence.push_back(
      {EvidenceId::driver_asked,
       fmt::format("{} (pid {}) queried the driver version (CUDA {}) but did not initialize it: a runtime "
                   "that needs a newer driver does so too, and returns 35.",
                   who, process.pid, name(process.driver)),
       {},
       {{"driver", name(process.driver)}}});
  if (newer)
    out.evidence.push_back({EvidenceId::built_with,
                            fmt::format("{} was built with CUDA {}.", who, name(runtime)),
                            {},
                            {{"cuda", name(runtime)}}});
  Facts at;
  at.call.code = core::kInsufficientDriver;
  at.driver.cuda = process.driver;
  at.gpu.cc = device;
  if (newer) at.driver.runtime = runtime;
  set_about(std::move(at), out);
  return out;
}

// cuSPARSELt 0.6.2 has code for 7.5 in 1 of 281 different modules, for 12.0 in 3; cuTENSOR 2.8.1 for 6.1 in 1
// of 565; cuBLASLt 12.9, which serves 6.1, in 68 of 413.
bool serves_by_helpers(const ModuleShare& modules) {
  constexpr std::size_t kHelpers = 25;
  return modules.served * kHelpers <= modules.lacking;
}

}  // namespace kshim::diagnose
