// SPDX-License-Identifier: Apache-2.0
// What the advice needs to know, gathered from report and files.
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/package_fixes.h"
#include "analyzer/advise/printable.h"
#include "analyzer/advise/program.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/data/pythons.h"
#include "analyzer/device_code/elf_facts.h"
#include "analyzer/diagnose/attribution.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/places.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/owner/direct_url.h"
#include "analyzer/owner/python_environment.h"

namespace kshim::analysis {
namespace {

// Who built the file.
BuiltBy built_by(const Scene& scene, const Subject& subject) {
  if (scene.options.assume_toolkit) return {*scene.options.assume_toolkit, "as assumed"};
  return builder_of(subject.images.images, subject.images.toolkit);
}

bool runs_python(const Scene& scene) {
  return basename_of(scene.report.process.exe).starts_with("python") || scene.index.has_python();
}

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
    if (std::find(out.begin(), out.end(), arch->cc) == out.end()) out.push_back(arch->cc);
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

// What a package manager put there is no program of the user's, wherever it lies.
// Where it came from only `here` may say, what this machine's own records have of it: a report could name
// anybody's source.
void set_package(const PackageRecord& package, const PackageRecord* here, Situation& at) {
  at.manager = package.manager;
  if (packages::is_package_name(package.name)) {
    at.package = package.name;
    at.package_version = package.version;
  }
  if (here != nullptr) {
    at.environment = here->environment;
    at.channel = here->channel;
    if (at.manager == "pip" && packages::is_source(here->source)) at.source = here->source;
  }
  at.from_source = !at.source.empty();
  if (at.manager == "pip" || at.manager == "conda") at.origin = Origin::installed;
  if (at.manager == "dpkg" || at.manager == "rpm") at.origin = Origin::system;
}

/// What a report of another user says in its own words, as far as commands are made of it.
void forget_strings(Situation& at) {
  at.build_folder.clear();
  at.program.clear();
  at.caller_package.clear();
  at.serving_device.clear();
  at.cache_entry.clear();
}

}  // namespace

void add_advice(const Scene& scene, const Subject& subject, Finding& finding) {
  if (!scene.advised.wants(finding)) return;
  Situation at;
  at.cause = finding.cause;
  // No list of architectures ends what this driver cannot read.
  if (at.cause == Cause::latent_gap && diagnose(subject.facts).cause == Cause::driver_too_old_for_image)
    at.cause = Cause::driver_too_old_for_image;
  at.code = finding.code;
  at.object = finding.object;
  const OriginFacts origin = origin_of(finding.object);
  at.origin = origin.origin;
  at.build_folder = origin.build_folder;
  if (subject.object != nullptr) {
    const ObjectFile* file = scene.files.find(*subject.object);
    at.bare = file != nullptr && file->is_bare();
    at.relocatable = file != nullptr && file->has_relocatable_code();
    at.shared_library = file != nullptr ? file->is_shared_library()
                                        : basename_of(finding.object).find(".so") != std::string_view::npos;
    const auto here = package_here(scene, *subject.object);
    const auto package = scene.report.foreign ? here : package_of(scene, *subject.object);
    const PackageRecord* source = scene.options.trust_reports && package ? &*package
                                  : here                                 ? &*here
                                                                         : nullptr;
    if (package)
      set_package(*package, source != nullptr && source->name == package->name ? source : nullptr, at);
  } else if (subject.caller && !subject.facts.compiler && !scene.report.foreign) {
    set_package(*subject.caller, scene.options.trust_reports ? &*subject.caller : nullptr, at);
  }
  if (origin.origin == Origin::memory) at.bare = true;
  at.device = subject.facts.device;
  if (subject.device != nullptr) at.device_name = subject.device->name;
  at.other_devices = other_devices(scene, subject);
  at.driver = subject.facts.driver;
  if (scene.report.driver) at.kernel_module = scene.report.driver->kernel_module;
  const BuiltBy builder = built_by(scene, subject);
  at.toolkit = builder.toolkit;
  at.toolkit_how = builder.how;
  for (const ImageFact& image : subject.images.images) {
    at.have.push_back(image.candidate);
    if (image.has_kernel != true) continue;
    std::string name(image::to_name(image.candidate.kind, image.candidate.arch).view());
    if (std::find(at.kernel_images.begin(), at.kernel_images.end(), name) == at.kernel_images.end()) {
      at.kernel_images.push_back(std::move(name));
    }
  }
  at.loose = subject.facts.loose;
  at.runtime = subject.facts.runtime;
  at.asked_by_name = subject.facts.asked_by_name;
  at.kernels = subject.facts.kernels;
  at.alike = subject.facts.alike;
  for (const ImageFact& image : subject.images.images) {
    if (image.candidate.kind == image::ImageKind::cubin)
      at.newest_cubin = std::max(at.newest_cubin, image.toolkit);
  }
  if (subject.cached) {
    at.cache = subject.cached->cache->who;
    at.cache_variable = subject.cached->cache->variable;
    at.cache_entry = subject.cached->entry;
  }
  if (const auto& compiler = subject.facts.compiler) {
    at.compiler = compiler->name;
    at.compiler_version = compiler->version;
    at.asked = compiler->asked;
    at.serves_device = at.device && std::any_of(compiler->known.begin(), compiler->known.end(),
                                                [&](image::Arch arch) { return arch.cc == *at.device; });
    if (subject.caller && subject.caller->manager == "pip") at.caller_package = subject.caller->name;
  }
  at.torch = scene.index.has_torch();
  // A Python extension of a process with PyTorch in it is most likely PyTorch's: the report does not say what
  // is linked with what, and the file need not be on this machine.
  at.links_torch = lies_beside_torch(at.object) ||
                   links_torch(elf_facts(path_at_hand(scene, subject, at.object))) ||
                   (at.torch && (at.origin == Origin::python_extension || at.origin == Origin::installed));
  at.object_file = at.object.ends_with(".o") || at.object.ends_with(".obj");
  at.switches = switch_names(scene.report);
  at.serving_device = serving_device(scene, subject);
  at.python = runs_python(scene);
  at.python_version = python_of_path(at.object);
  if (at.python_version.empty()) at.python_version = python_of_path(scene.report.process.exe);
  at.ranked = scene.report.process.rank.has_value();
  at.program = program_of(scene.report.process);
  const std::string entry = at.cache_entry.empty() ? extension_folder(at) : at.cache_entry;
  if (scene.report.foreign) {
    forget_strings(at);
  } else {
    at.removable = removable_cache_entry(entry);
    at.python_env = packages::python_environment(at.object, at.environment, at.manager == "conda");
  }
  Advice advice = advise(at);
  if (scene.report.foreign)
    keep_free_of({finding.object, scene.report.process.exe, scene.report.process.cwd, entry}, advice.fixes);
  finding.fixes = std::move(advice.fixes);
  finding.dead_ends = std::move(advice.dead_ends);
  finding.remarks = std::move(advice.remarks);
}

}  // namespace kshim::analysis
