// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/advice_input.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/program.h"

namespace kshim::diagnose {
namespace {

// Another GPU of the process for which the same images do. By UUID, which CUDA_VISIBLE_DEVICES in the
// environment cannot renumber; a simulated GPU has none that another tool knows.
std::string serving_device(const Scene& scene, const Subject& subject) {
  if (scene.options.assume_cc || subject.device == nullptr || subject.images.scope == ImageScope::none)
    return {};
  const bool simulated = scene.report.driver && scene.report.driver->simulated;
  for (const DeviceRecord& row : scene.report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (row.ordinal == subject.device->ordinal || !arch) continue;
    Facts other = subject.facts;
    other.device = arch->cc;
    if (select(other.images, other, other.switches).choice == image::Choice::none) continue;
    return row.uuid.empty() || simulated ? std::to_string(row.ordinal) : row.uuid;
  }
  return {};
}

// The other kinds of GPUs of the machine: what is built for the one must not take theirs away.
std::vector<image::ComputeCapability> other_devices(const Scene& scene, const Subject& subject) {
  std::vector<image::ComputeCapability> out;
  for (const DeviceRecord& row : scene.report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (!arch || arch->cc == subject.facts.device) continue;
    if (!contains(out, arch->cc)) out.push_back(arch->cc);
  }
  return out;
}

// Where the very file of the finding can be read; empty where another lies at its path now.
std::string path_at_hand(const Scene& scene, const Subject& subject, const std::string& path) {
  if (subject.object == nullptr || path != subject.object->path) return path;
  if (scene.files.find(*subject.object) == nullptr) return {};
  const std::string& other = scene.files.elsewhere(*subject.object);
  return other.empty() ? path : other;
}

/// What a report of another user says in its own words, as far as commands are made of it.
void forget_strings(AdviceInput& at) {
  at.build_folder.clear();
  at.program.clear();
  at.caller_package.clear();
  at.serving_device.clear();
  at.cache_entry.clear();
}

/// A report may have come by mail: a name that nobody here knows may be anyone's on PyPI.
PackageRecord with_known_name(PackageRecord package) {
  if (known_project(package.name).empty()) package.name.clear();
  return package;
}

void set_owner(const Scene& scene, const Subject& subject, AdviceInput& at) {
  if (subject.object != nullptr) {
    const auto here = package_here(scene, *subject.object);
    const auto package = scene.report.foreign ? here : package_of(scene, *subject.object);
    const PackageRecord* source = scene.options.trust_reports && package ? &*package
                                  : here                                 ? &*here
                                                                         : nullptr;
    if (package && source != nullptr && source->name == package->name)
      set_package(*package, source, at);
    else if (package)
      set_package(with_known_name(*package), nullptr, at);
  } else if (subject.caller && !subject.facts.compiler && !scene.report.foreign) {
    if (scene.options.trust_reports)
      set_package(*subject.caller, &*subject.caller, at);
    else
      set_package(with_known_name(*subject.caller), nullptr, at);
  }
  if (subject.facts.compiler && subject.caller && subject.caller->manager == "pip")
    at.caller_package = with_known_name(*subject.caller).name;
}

}  // namespace

AdviceInput advice_input(const Finding& finding, Facts facts, image::Version cubins) {
  AdviceInput at;
  static_cast<Facts&>(at) = std::move(facts);
  at.cause = finding.cause;
  // No list of architectures ends what this driver cannot read.
  if (at.cause == Cause::latent_gap && diagnosis_of(at).cause == Cause::driver_too_old_for_image)
    at.cause = Cause::driver_too_old_for_image;
  at.code = finding.code;
  at.object = finding.object;
  const BuiltBy builder = builder_of(at.images, cubins);
  at.toolkit = builder.toolkit;
  at.toolkit_how = builder.how;
  for (const ImageFact& image : at.images) {
    at.have.push_back(image.candidate);
    if (image.candidate.kind == image::ImageKind::cubin)
      at.newest_cubin = std::max(at.newest_cubin, image.toolkit);
    if (image.has_kernel != true) continue;
    std::string name(image::to_name(image.candidate.kind, image.candidate.arch).view());
    if (!contains(at.kernel_images, name)) at.kernel_images.push_back(std::move(name));
  }
  return at;
}

Finding new_finding(Cause cause, double confidence, std::string headline) {
  Finding out;
  out.cause = cause;
  out.severity = row_of(cause).severity;
  out.confidence = confidence;
  out.headline = std::move(headline);
  return out;
}

void set_about(AdviceInput at, Finding& finding) {
  at.cause = finding.cause;
  finding.about = std::make_shared<const AdviceInput>(std::move(at));
}

void set_file(const FileFacts& file, AdviceInput& at) {
  const OriginFacts origin = origin_of(file.path);
  at.origin = origin.origin;
  at.build_folder = origin.build_folder;
  at.bare = file.bare || at.origin == Origin::memory;
  at.relocatable = file.relocatable;
  // What is built again is all of the file, with all that the modules which lack nothing have.
  if (!file.images.empty()) at.have = file.images;
  at.shared_library = file.shared_library;
  at.object_file = !at.archive.empty() || at.object.ends_with(".o") || at.object.ends_with(".obj");
  at.links_torch = lies_beside_torch(at.object) || links_torch(elf_facts(file.readable));
}

void set_package(const PackageRecord& package, const PackageRecord* here, AdviceInput& at) {
  at.manager = package.manager;
  if (is_package_name(package.name)) {
    at.package = package.name;
    at.package_version = package.version;
  }
  if (here != nullptr) {
    at.environment = here->environment;
    at.channel = here->channel;
    if (at.manager == "pip" && is_source(here->source)) at.source = here->source;
  }
  at.from_source = !at.source.empty();
  if (at.manager == "pip" || at.manager == "conda") at.origin = Origin::installed;
  if (at.manager == "dpkg" || at.manager == "rpm") at.origin = Origin::system;
}

void set_advice_input(const Scene& scene, const Subject& subject, Finding& finding) {
  if (!scene.advised.wants(finding)) return;
  AdviceInput at = advice_input(finding, subject.facts, subject.images.toolkit);
  if (!at.asked_by_name) at.kernels.clear();  // for the name alone, and many
  if (scene.options.assume_toolkit) {
    at.toolkit = *scene.options.assume_toolkit;
    at.toolkit_how = "as assumed";
  }
  const ObjectFile* file = subject.object != nullptr ? scene.files.find(*subject.object) : nullptr;
  FileFacts facts{finding.object, path_at_hand(scene, subject, at.object), file != nullptr && file->is_bare(),
                  file != nullptr && file->has_relocatable_code(),
                  file != nullptr ? file->is_shared_library()
                                  : subject.object != nullptr &&
                                        basename_of(at.object).find(".so") != std::string_view::npos};
  if (file != nullptr && finding.cause == Cause::latent_gap)
    for (const ImageCount& row : file->image_counts()) facts.images.push_back(row.candidate);
  set_file(facts, at);
  set_owner(scene, subject, at);
  at.torch = scene.index.has_torch();
  // A Python extension of a process with PyTorch in it is most likely PyTorch's: the report does not say what
  // is linked with what, and the file need not be on this machine.
  at.links_torch = at.links_torch ||
                   (at.torch && (at.origin == Origin::python_extension || at.origin == Origin::installed));
  if (subject.device != nullptr) at.device_name = subject.device->name;
  at.other_devices = other_devices(scene, subject);
  if (scene.report.driver) at.kernel_module = scene.report.driver->kernel_module;
  if (subject.cached) {
    at.cache = subject.cached->cache->who;
    at.cache_variable = subject.cached->cache->variable;
    at.cache_entry = subject.cached->entry;
  }
  const auto& env = scene.report.process.env;
  const auto cache = env.find("CUDA_CACHE_DISABLE");
  at.jit_cache_off = cache != env.end() && cache->second == "1";
  at.switch_names = switch_names(scene.report);
  at.serving_device = serving_device(scene, subject);
  at.python = basename_of(scene.report.process.exe).starts_with("python") || scene.index.has_python();
  at.python_version = python_of_path(at.object);
  if (at.python_version.empty()) at.python_version = python_of_path(scene.report.process.exe);
  at.ranked = scene.report.process.rank.has_value();
  at.program = command_line_of(scene.report.process);
  if (scene.report.foreign) {
    forget_strings(at);
  } else {
    at.python_env = python_environment(at.object, at.environment, at.manager == "conda");
  }
  finding.about = std::make_shared<const AdviceInput>(std::move(at));
}

std::string platform_of(const AdviceInput& at) {
  if (!at.platform.empty()) return at.platform;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  return std::string(gpu != nullptr && gpu->tegra ? "linux aarch64" : kLinux);
}

}  // namespace kshim::diagnose
