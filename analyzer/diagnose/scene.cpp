// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/scene.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "analyzer/core/codes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/attribution.h"
#include "analyzer/diagnose/places.h"
#include "kshim/base/cuda_error.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

bool is_on(const Report& report, const SwitchRow& row) {
  const auto found = report.process.env.find(std::string(row.variable));
  return found != report.process.env.end() && !found->second.empty() && found->second != "0";
}

// Somebody else came to ask for the error of a question: the library that had asked it was done.
bool asked_by_another(const Scene& scene, const FailureRecord& failure) {
  if (failure.stage != "query") return false;
  return std::any_of(scene.report.reads.begin(), scene.report.reads.end(), [&](const ReadRecord& read) {
    return read.failure == failure.id && read.object != failure.object;
  });
}

// A library that tries and goes on: no launch of its code failed, and either the program lived on or the file
// does have something for this GPU.
bool went_on(const Scene& scene, const FailureRecord& failure, const Subject& subject) {
  const auto id_of = [](const auto* row) { return row != nullptr ? std::optional(row->id) : std::nullopt; };
  if (scene.index.launch_failed(id_of(subject.object), id_of(subject.module))) return false;
  // What the GPU allows, and what the driver knows, is asked in order to choose; a refusal is an answer,
  // however the program ended.
  constexpr int kInvalidValue = 1;
  const bool asked_for_limits =
      failure.stage == "query" &&
      std::any_of(failure.layers.begin(), failure.layers.end(), [](const Layer& layer) {
        return layer.code == kInvalidValue || code_has(layer.code, code_trait::limit);
      });
  if (asked_for_limits) return true;
  if (ended_well(scene) || asked_by_another(scene, failure)) return true;
  if (subject.object == nullptr || !subject.facts.device) return false;
  const ObjectFile* file = scene.files.find(*subject.object);
  if (file == nullptr) return false;
  const auto counts = file->image_counts();
  return std::any_of(counts.begin(), counts.end(), [&](const ImageCount& row) {
    return image::judge(row.candidate, {*subject.facts.device, subject.facts.driver, {}}).fits;
  });
}

void add_common(const Scene& scene, Subject& subject) {
  subject.facts.driver = driver_of(scene);
  subject.facts.switches = switches_of(scene.report);
  subject.facts.images = subject.images.images;
  subject.facts.scope = subject.images.scope;
  subject.facts.damage = subject.images.damage;
}

// The runtime asks for the names that its compiler registered. A program that asks by itself may have the
// name as the source has it, which is not the mangled one.
void add_names(const Scene& scene, const std::string& kernel, Subject& subject) {
  if (kernel.empty()) return;
  Facts& facts = subject.facts;
  const ObjectFile* file = subject.object != nullptr ? scene.files.find(*subject.object) : nullptr;
  const bool bare = facts.loose || (file != nullptr && file->is_bare());
  facts.asked_by_name = (bare || !kernel.starts_with("_Z")) && !facts.has_code(98);
  if (!subject.images.complete_kernels) return;
  const std::string base = base_name(demangle(kernel));
  for (const FileImage& image : subject.images.file_images) {
    for (const std::string& name : image.kernels) {
      if (std::find(facts.kernels.begin(), facts.kernels.end(), name) != facts.kernels.end()) continue;
      facts.kernels.push_back(name);
      if (name != kernel && base_name(demangle(name)) == base) facts.alike.push_back(name);
    }
  }
}

void find_in_caches(const Scene& scene, Subject& subject) {
  const auto& environment = scene.report.process.env;
  if (!is_of_this_machine(scene.report)) return;  // its caches tell nothing of another's
  if (subject.facts.loose && subject.module != nullptr) {
    std::uint64_t hash = 0;
    const std::string& digits = subject.module->content_hash;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    if (error == std::errc() && end == digits.data() + digits.size() && subject.module->size)
      subject.cached = scene.files.caches().find(hash, *subject.module->size, environment);
  } else if (subject.object != nullptr) {
    // Bare device code alone: programs and libraries are not what such a cache holds.
    const ObjectFile* file = scene.files.find(*subject.object);
    if (file != nullptr && file->is_bare())
      subject.cached = CacheSearch::holding(subject.object->path, environment);
  }
  if (subject.cached) subject.facts.cache = subject.cached->cache->who;
}

bool driver_found(const Report& report) {
  return report.driver || std::any_of(report.libraries.begin(), report.libraries.end(),
                                      [](const LibraryRecord& row) { return row.soname == "libcuda.so.1"; });
}

// The only shared runtime of the process, where it was one that failed.
image::Version failing_runtime(const Report& report, const FailureRecord& failure) {
  constexpr std::string_view kSoname = "libcudart.so.";
  const bool runtime = std::any_of(failure.layers.begin(), failure.layers.end(),
                                   [](const Layer& layer) { return layer.layer == "runtime"; });
  image::Version out;
  for (const LibraryRecord& row : report.libraries) {
    if (!runtime || !row.soname.starts_with(kSoname)) continue;
    const std::string digits = row.soname.substr(kSoname.size());
    const auto version = image::parse_version(digits.find('.') == std::string::npos ? digits + ".0" : digits);
    if (out.known() || !version) return {};
    out = *version;
  }
  return out;
}

// The innermost frame of an installed Python package that is not NVIDIA's own.
std::optional<PackageRecord> caller_package(const Scene& scene, const FailureRecord& failure) {
  for (const NativeFrame& frame : failure.native) {
    const auto known = std::find_if(scene.report.objects.begin(), scene.report.objects.end(),
                                    [&](const ObjectRecord& row) { return row.path == frame.object; });
    ObjectRecord object;
    if (known != scene.report.objects.end()) {
      object = *known;
    } else {
      object.path = frame.object;
      object.build_id = frame.build_id;
    }
    auto package = package_of(scene, object);
    if (package && (package->manager == "pip" || package->manager == "conda") &&
        !package->name.starts_with("nvidia-"))
      return package;
  }
  return std::nullopt;
}

// No file is at fault where the driver is too old for a runtime: the package that brought it is.
bool is_refused_driver(const FailureRecord& failure) {
  return failure.object == std::nullopt &&
         std::any_of(failure.layers.begin(), failure.layers.end(), [](const Layer& layer) {
           return layer.layer == "runtime" && layer.code == kInsufficientDriver;
         });
}

std::optional<CompilerFacts> compiler_of(const FailureRecord& failure) {
  const auto arch = image::parse_arch(failure.asked);
  if (failure.layers.empty() || !arch) return std::nullopt;
  const std::string& layer = failure.layers.front().layer;
  if (layer != "nvrtc" && layer != "nvjitlink") return std::nullopt;
  CompilerFacts out;
  out.name = layer == "nvrtc" ? "NVRTC" : "nvJitLink";
  out.asked = *arch;
  // NVJITLINK_ERROR_UNRECOGNIZED_ARCH, _UNSUPPORTED_ARCH; NVRTC has "invalid option" for it, and few others.
  out.by_code = failure.layers.front().name.ends_with("_ARCH") || layer == "nvrtc";
  out.version = image::parse_version(failure.compiler).value_or(image::Version{});
  for (const std::string& known : failure.known) {
    if (const auto known_arch = image::parse_arch(known)) out.known.push_back(*known_arch);
  }
  std::sort(out.known.begin(), out.known.end());
  return out;
}

}  // namespace

std::optional<ComputeCapability> cc_of(const Scene& scene, const DeviceRecord* device) {
  if (scene.options.assume_cc) return scene.options.assume_cc;
  const auto parse = [](const DeviceRecord& row) -> std::optional<ComputeCapability> {
    const auto arch = image::parse_arch(row.compute_capability);
    return arch ? std::optional(arch->cc) : std::nullopt;
  };
  if (device != nullptr) return parse(*device);
  // The device is not known, but where all are alike it does not matter.
  std::optional<ComputeCapability> common;
  for (const DeviceRecord& row : scene.report.devices) {
    const auto cc = parse(row);
    if (!cc || (common && *common != *cc)) return std::nullopt;
    common = cc;
  }
  return common;
}

image::Version driver_of(const Scene& scene) {
  if (scene.options.assume_driver) return *scene.options.assume_driver;
  if (!scene.report.driver) return {};
  return image::parse_version(scene.report.driver->cuda_version).value_or(image::Version{});
}

image::JitSwitches switches_of(const Report& report) {
  image::JitSwitches out;
  for (const SwitchRow& row : switches()) out.*row.field = is_on(report, row);
  return out;
}

std::vector<std::string> switch_names(const Report& report) {
  std::vector<std::string> out;
  for (const SwitchRow& row : switches()) {
    if (is_on(report, row)) out.emplace_back(row.variable);
  }
  return out;
}

bool ended_well(const Scene& scene) {
  if (scene.options.term_signal) return false;
  if (scene.options.exit_status) return *scene.options.exit_status == 0;
  return scene.report.end.has_value();
}

std::optional<Device> device_of(const Scene& scene, const DeviceRecord* device) {
  Device out;
  out.cc = cc_of(scene, device);
  if (scene.options.assume_cc) {
    out.kind = Device::Kind::assumed;
    return out;
  }
  if (device == nullptr) return out.cc ? std::optional(out) : std::nullopt;
  out.ordinal = device->ordinal;
  // The simulator's names say so themselves.
  constexpr std::string_view kSimulated = " (simulated)";
  out.name = device->name;
  out.simulated = device->name.ends_with(kSimulated);
  if (out.simulated) out.name.resize(out.name.size() - kSimulated.size());
  return out;
}

ReportLine location(const Report& report, std::uint32_t line) {
  return line == 0 ? ReportLine{} : ReportLine{report.path, line};
}

std::string object_text(const Subject& subject) {
  return subject.object == nullptr ? "the image" : std::string(basename_of(subject.object->path));
}

Subject subject_of(const Scene& scene, const FailureRecord& failure) {
  Subject subject;
  subject.module = scene.index.module(failure.module);
  subject.object = scene.index.object(failure.object);
  if (subject.object == nullptr && subject.module != nullptr)
    subject.object = scene.index.object(subject.module->object);
  const auto ordinal = failure.device              ? failure.device
                       : subject.module != nullptr ? subject.module->device
                                                   : std::nullopt;
  subject.device = scene.index.device(ordinal);
  const std::optional<std::uint64_t> object_id =
      subject.object != nullptr ? std::optional(subject.object->id) : std::nullopt;
  const auto offset = subject.module != nullptr ? subject.module->offset : std::nullopt;
  if (subject.object != nullptr || subject.module != nullptr) {
    subject.gap = scene.index.gap(object_id, offset, ordinal, failure.line);
  }
  subject.images =
      find_images({subject.object, offset, subject.gap, failure.kernel, subject.module}, scene.files);
  subject.facts.compiler = compiler_of(failure);
  if (subject.facts.compiler || is_refused_driver(failure)) subject.caller = caller_package(scene, failure);
  for (const Layer& layer : failure.layers) {
    if (layer.code != 0 && !subject.facts.compiler) subject.facts.codes.push_back(layer.code);
  }
  subject.facts.stage = failure.stage;
  subject.facts.device = cc_of(scene, subject.device);
  subject.facts.loose = subject.object == nullptr && subject.module != nullptr;
  add_common(scene, subject);
  add_names(scene, failure.kernel, subject);
  find_in_caches(scene, subject);
  subject.facts.probing_caller = called_by_probing_library(failure);
  subject.facts.went_on = went_on(scene, failure, subject);
  subject.facts.parent_initialised = scene.parent_initialised;
  subject.facts.first = &failure == &scene.report.failures.front();
  subject.facts.devices = scene.report.devices.size();
  subject.facts.driver_found = driver_found(scene.report);
  subject.facts.runtime = failing_runtime(scene.report, failure);
  return subject;
}

Subject subject_of(const Scene& scene, const GapRecord& gap, ComputeCapability cc) {
  Subject subject;
  subject.gap = &gap;
  subject.object = scene.index.object(gap.object);
  subject.device = gap.device ? scene.index.device(gap.device) : nullptr;
  subject.images = find_images(
      {subject.object, gap.offset, &gap, gap.kernels.empty() ? std::string() : gap.kernels.front()},
      scene.files);
  subject.facts.device = cc;
  subject.facts.loose = subject.object == nullptr;
  add_common(scene, subject);
  return subject;
}

}  // namespace kshim::analysis
