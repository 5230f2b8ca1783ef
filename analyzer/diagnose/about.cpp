// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/about.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/program.h"

namespace kshim::diagnose {
using core::Cause;
using core::Finding;
using input::PackageRecord;

namespace {

// Another GPU of the process for which the same images do. By UUID, which CUDA_VISIBLE_DEVICES in the
// environment cannot renumber; a simulated GPU has none that another tool knows.
std::string serving_device(const Scene& scene, const InReport& subject) {
  if (scene.options.assume_cc || subject.device == nullptr || subject.facts.images.scope == ImageScope::none)
    return {};
  const bool simulated = scene.report.driver && scene.report.driver->simulated;
  for (const input::DeviceRecord& row : scene.report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (row.ordinal == subject.device->ordinal || !arch) continue;
    Facts other = subject.facts;
    other.gpu.cc = arch->cc;
    if (select(other.images.list, other, other.driver.switches).choice == image::Choice::none) continue;
    return row.uuid.empty() || simulated ? std::to_string(row.ordinal) : row.uuid;
  }
  return {};
}

// The other kinds of GPUs of the machine: what is built for the one must not take theirs away.
std::vector<image::ComputeCapability> other_devices(const Scene& scene, const InReport& subject) {
  std::vector<image::ComputeCapability> out;
  for (const input::DeviceRecord& row : scene.report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (!arch || arch->cc == subject.facts.gpu.cc) continue;
    if (!core::contains(out, arch->cc)) out.push_back(arch->cc);
  }
  return out;
}

// Where the very file of the finding can be read; empty where another lies at its path now.
std::string path_at_hand(const Scene& scene, const InReport& subject, const std::string& path) {
  if (subject.object == nullptr || path != subject.object->path) return path;
  if (scene.files.find(*subject.object) == nullptr) return {};
  const std::string& other = scene.files.elsewhere(*subject.object);
  return other.empty() ? path : other;
}

/// What a report of another user says in its own words, as far as commands are made of it.
void forget_strings(Facts& at) {
  at.file.build_folder.clear();
  at.process.program.clear();
  at.call.package.clear();
  at.gpu.serving.clear();
  at.file.cache_entry.clear();
}

/// A report may have come by mail: a name that nobody here knows may be anyone's on PyPI.
PackageRecord with_known_name(PackageRecord package) {
  if (data::known_project(package.name).empty()) package.name.clear();
  return package;
}

void set_owner(const Scene& scene, const InReport& subject, Facts& at) {
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
  } else if (subject.caller && !subject.facts.call.compiler && !scene.report.foreign) {
    if (scene.options.trust_reports)
      set_package(*subject.caller, &*subject.caller, at);
    else
      set_package(with_known_name(*subject.caller), nullptr, at);
  }
  if (subject.facts.call.compiler && subject.caller && subject.caller->manager == "pip")
    at.call.package = with_known_name(*subject.caller).name;
}

}  // namespace

Facts facts_about(const Finding& finding, Facts at) {
  at.images.source.reset();
  at.cause = finding.cause;
  // No list of architectures ends what this driver cannot read.
  if (at.cause == Cause::latent_gap && diagnosis_of(at).cause == Cause::driver_too_old_for_image)
    at.cause = Cause::driver_too_old_for_image;
  at.call.code = finding.code;
  at.file.path = finding.object;
  const BuiltBy builder = builder_of(at.images.list, at.images.toolkit);
  at.images.toolkit = builder.toolkit;
  at.images.toolkit_how = builder.how;
  for (const ImageFact& image : at.images.list) {
    at.images.have.push_back(image.candidate);
    if (image.has_kernel != true) continue;
    std::string name(image::to_name(image.candidate.kind, image.candidate.arch).view());
    if (!core::contains(at.images.holders, name)) at.images.holders.push_back(std::move(name));
  }
  return at;
}

image::Version newest_cubin(const Facts::Images& images) {
  image::Version out;
  for (const ImageFact& image : images.list)
    if (image.candidate.kind == image::ImageKind::cubin) out = std::max(out, image.toolkit);
  return out;
}

Finding new_finding(Cause cause, double confidence, std::string headline) {
  Finding out;
  out.cause = cause;
  out.severity = row_of(cause).severity;
  out.confidence = confidence;
  out.headline = std::move(headline);
  return out;
}

void set_about(Facts at, Finding& finding) {
  at.cause = finding.cause;
  finding.about = std::make_shared<const Facts>(std::move(at));
}

void complete_file(std::string_view path, const std::string& readable, Facts& at) {
  const OriginFacts origin = origin_of(path);
  at.file.origin = origin.origin;
  at.file.build_folder = origin.build_folder;
  at.file.bare = at.file.bare || at.file.origin == Origin::memory;
  at.file.links_torch = device_code::lies_beside_torch(at.file.path) ||
                        device_code::links_torch(device_code::elf_facts(readable));
}

void set_package(const PackageRecord& package, const PackageRecord* here, Facts& at) {
  at.package.manager = package.manager;
  if (owner::is_package_name(package.name)) {
    at.package.name = package.name;
    at.package.version = package.version;
  }
  if (here != nullptr) {
    at.package.environment = here->environment;
    at.package.channel = here->channel;
    if (at.package.manager == "pip" && owner::is_source(here->source)) at.package.source = here->source;
  }
  at.package.from_source = !at.package.source.empty();
  if (at.package.manager == "pip" || at.package.manager == "conda") at.file.origin = Origin::installed;
  if (at.package.manager == "dpkg" || at.package.manager == "rpm") at.file.origin = Origin::system;
}

void set_about(const Scene& scene, const InReport& subject, Finding& finding) {
  if (!scene.advised.wants(finding)) return;
  Facts at = facts_about(finding, subject.facts);
  if (!at.call.by_name) at.images.kernels.clear();  // for the name alone, and many
  if (scene.options.assume_toolkit) {
    at.images.toolkit = *scene.options.assume_toolkit;
    at.images.toolkit_how = "as assumed";
  }
  const device_code::ObjectFile* file =
      subject.object != nullptr ? scene.files.find(*subject.object) : nullptr;
  at.file.bare = file != nullptr && file->is_bare();
  at.file.relocatable = file != nullptr && file->has_relocatable_code();
  at.file.shared_library = file != nullptr ? file->is_shared_library()
                           : subject.object != nullptr
                               ? core::contains(core::basename_of(at.file.path), ".so")
                               : false;
  // What is built again is all of the file, with all that the modules which lack nothing have.
  if (file != nullptr && finding.cause == Cause::latent_gap)
    if (const auto counts = file->image_counts(); !counts.empty())
      at.images.have = core::mapped(counts, &device_code::ImageCount::candidate);
  complete_file(finding.object, path_at_hand(scene, subject, at.file.path), at);
  set_owner(scene, subject, at);
  at.process.torch = scene.index.has_torch();
  // A Python extension of a process with PyTorch in it is most likely PyTorch's: the report does not say what
  // is linked with what, and the file need not be on this machine.
  at.file.links_torch = at.file.links_torch ||
                        (at.process.torch &&
                         (at.file.origin == Origin::python_extension || at.file.origin == Origin::installed));
  at.gpu.others = other_devices(scene, subject);
  if (scene.report.driver) at.driver.module = scene.report.driver->kernel_module;
  const auto& env = scene.report.process.env;
  const auto cache = env.find("CUDA_CACHE_DISABLE");
  at.driver.jit_cache_off = cache != env.end() && cache->second == "1";
  at.gpu.serving = serving_device(scene, subject);
  at.process.python =
      core::basename_of(scene.report.process.exe).starts_with("python") || scene.index.has_python();
  at.process.python_version = data::python_of_path(at.file.path);
  if (at.process.python_version.empty())
    at.process.python_version = data::python_of_path(scene.report.process.exe);
  at.process.ranked = scene.report.process.rank.has_value();
  at.process.program = command_line_of(scene.report.process);
  if (scene.report.foreign) {
    forget_strings(at);
  } else {
    at.process.python_env =
        owner::python_environment(at.file.path, at.package.environment, at.package.manager == "conda");
  }
  finding.about = std::make_shared<const Facts>(std::move(at));
}

std::string platform_of(const Facts& at) {
  if (!at.package.platform.empty()) return at.package.platform;
  const data::GpuRow* gpu = at.gpu.cc ? data::find_gpu(*at.gpu.cc) : nullptr;
  return std::string(gpu != nullptr && gpu->tegra ? "linux aarch64" : data::kLinux);
}

}  // namespace kshim::diagnose
