// SPDX-License-Identifier: Apache-2.0
// Gaps that nothing has run into: what the shim recorded for KSHIM_TARGET, and the files of the report read
// again for the present GPUs and for --target.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analyzer/analysis/failure_finding.h"
#include "analyzer/analysis/report_findings.h"
#include "analyzer/knowledge/knowledge.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

// Kernels are read for their names; beyond this many bytes of payload the names of the rest are left out.
constexpr std::uint64_t kMostPayload = std::uint64_t{256} << 20;

struct Wanted {
  ComputeCapability cc;
  const DeviceRecord* device = nullptr;  ///< nullptr for a target
};

std::string target_name(ComputeCapability cc) {
  return std::string(image::to_name(image::ImageKind::cubin, {cc, image::Suffix::none}).view());
}

// Each compute capability once; a target that is present as a GPU is a target all the same.
std::vector<Wanted> wanted_of(const Scene& scene) {
  std::vector<Wanted> out;
  const auto add = [&](ComputeCapability cc, const DeviceRecord* device) {
    if (std::none_of(out.begin(), out.end(), [&](const Wanted& row) { return row.cc == cc; }))
      out.push_back({cc, device});
  };
  for (const image::Arch& target : scene.options.targets) add(target.cc, nullptr);
  if (scene.options.assume_cc) {
    add(*scene.options.assume_cc, nullptr);
  } else {
    for (const DeviceRecord& row : scene.report.devices) {
      if (const auto arch = image::parse_arch(row.compute_capability)) add(arch->cc, &row);
    }
  }
  return out;
}

// Whether a failure has told it already. Loose images have no path: they are told apart by what they hold.
bool is_known(const std::vector<Finding>& known, const std::string& object, ComputeCapability cc,
              const std::vector<std::string>& have = {}) {
  return std::any_of(known.begin(), known.end(), [&](const Finding& finding) {
    return finding.severity == Severity::error && finding.object == object &&
           finding.need == target_name(cc) &&
           (!object.empty() ||
            std::is_permutation(have.begin(), have.end(), finding.have.begin(), finding.have.end()));
  });
}

bool serves(const std::vector<FileImage>& images, ComputeCapability cc, image::Version driver) {
  return std::any_of(images.begin(), images.end(), [&](const FileImage& image) {
    return image::judge(image.candidate, {cc, driver, {}}).fits;
  });
}

// Code that was deliberately locked to one architecture beside code that was not: the program has another
// way.
bool all_locked(const std::vector<FileImage>& images) {
  return std::all_of(images.begin(), images.end(), [](const FileImage& image) {
    return image.candidate.arch.suffix != image::Suffix::none;
  });
}

struct Unserved {
  std::vector<FileModule> modules;
  bool others_served = false;
  bool complete = true;
};

Unserved unserved_modules(const ObjectFile& file, ComputeCapability cc, image::Version driver) {
  Unserved out;
  std::vector<std::uint64_t> addresses;
  for (const std::uint64_t address : file.module_addresses()) {
    const FileModule module = file.module_at(address, Depth::headers);
    if (module.images.empty()) continue;
    if (serves(module.images, cc, driver)) {
      out.others_served = true;
    } else {
      addresses.push_back(address);
    }
  }
  std::uint64_t payload = 0;
  for (const std::uint64_t address : addresses) {
    FileModule module = file.module_at(address, payload < kMostPayload ? Depth::kernels : Depth::headers);
    for (const FileImage& image : module.images) payload += image.bytes;
    if (payload >= kMostPayload) out.complete = false;
    if (module.has_kernels() && !(out.others_served && all_locked(module.images)))
      out.modules.push_back(std::move(module));
  }
  return out;
}

// One finding for all modules of the file that nothing serves.
std::optional<Finding> gap_in_file(const Scene& scene, const ObjectRecord& object, const Wanted& wanted) {
  const ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return std::nullopt;
  const Unserved unserved = unserved_modules(*file, wanted.cc, driver_of(scene));
  if (unserved.modules.empty()) return std::nullopt;
  // Such libraries keep most kernels for some GPUs only, and choose among them.
  if (unserved.others_served && find_probing_library(object.path) != nullptr) return std::nullopt;
  Subject subject;
  subject.object = &object;
  subject.device = wanted.device;
  subject.facts.device = wanted.cc;
  subject.facts.driver = driver_of(scene);
  std::set<std::string> kernels;
  for (const FileModule& module : unserved.modules) {
    for (const FileImage& image : module.images) {
      kernels.insert(image.kernels.begin(), image.kernels.end());
      ImageFact fact;
      fact.candidate = image.candidate;
      fact.compression = image.compression;
      fact.toolkit = image.toolkit;
      subject.images.toolkit = std::max(subject.images.toolkit, image.toolkit);
      const auto same = std::find_if(
          subject.images.images.begin(), subject.images.images.end(), [&](const ImageFact& known) {
            return known.candidate.kind == fact.candidate.kind &&
                   known.candidate.arch == fact.candidate.arch && known.candidate.isa == fact.candidate.isa;
          });
      if (same == subject.images.images.end()) {
        subject.images.images.push_back(fact);
      } else {
        ++same->count;
      }
    }
  }
  subject.images.scope = ImageScope::module;
  subject.images.source = "read from the file";
  subject.images.line = object.line;
  subject.facts.images = subject.images.images;
  subject.facts.scope = ImageScope::module;
  return latent_finding(scene, subject, {kernels.begin(), kernels.end()}, unserved.complete);
}

std::optional<Finding> gap_in_report(const Scene& scene, const GapRecord& gap,
                                     const std::vector<Finding>& known) {
  const auto need = image::parse_arch(gap.need);
  if (!need) return std::nullopt;
  const ObjectRecord* object = scene.index.object(gap.object);
  if (is_known(known, object != nullptr ? object->path : std::string(), need->cc, gap.have))
    return std::nullopt;
  Subject subject = subject_of(scene, gap, need->cc);
  if (subject.facts.scope == ImageScope::none) return std::nullopt;
  if (select(subject.facts.images, subject.facts, {}).choice != image::Choice::none) return std::nullopt;
  std::vector<std::string> kernels =
      subject.images.file_images.empty() ? gap.kernels : lacking_kernels(subject.images, subject.facts, {});
  return latent_finding(scene, subject, std::move(kernels), subject.images.complete_kernels);
}

void as_target(Finding& finding) {
  finding.severity = Severity::warning;
  finding.devices = {finding.need.empty() ? "a target" : "target " + finding.need};
}

bool same_object(const Finding& finding, const Finding& other) {
  return finding.object == other.object && finding.need == other.need;
}

}  // namespace

std::vector<Finding> latent_gaps(const Scene& scene, const std::vector<Finding>& known) {
  std::vector<Finding> out;
  for (const Wanted& wanted : wanted_of(scene)) {
    for (const ObjectRecord& object : scene.report.objects) {
      if (object.fatbins == 0U || is_known(known, object.path, wanted.cc)) continue;
      auto finding = gap_in_file(scene, object, wanted);
      if (!finding) continue;
      if (wanted.device == nullptr) as_target(*finding);
      out.push_back(std::move(*finding));
    }
  }
  // Gaps that the shim recorded come second: the files, where they could be read, say the same and more.
  for (const GapRecord& gap : scene.report.gaps) {
    auto finding = gap_in_report(scene, gap, known);
    if (!finding) continue;
    if (std::any_of(out.begin(), out.end(),
                    [&](const Finding& other) { return same_object(*finding, other); }))
      continue;
    if (!gap.device) as_target(*finding);
    out.push_back(std::move(*finding));
  }
  return out;
}

}  // namespace kshim::analysis
