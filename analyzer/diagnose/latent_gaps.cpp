// SPDX-License-Identifier: Apache-2.0
// Gaps that nothing has run into: what the shim recorded for KSHIM_TARGET, and the files of the report read
// again for the present GPUs and for --target.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

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

/// What failures have told already: objects and what each lacks. Loose images have no path: they are told
/// apart by what they hold.
class Known {
 public:
  explicit Known(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.severity != Severity::error) continue;
      told_.insert(key_of(finding.object, finding.need, finding.have));
      // The process had it in memory; that it is a cache's file was found out afterwards.
      if (finding.cause == Cause::stale_cache_artifact) told_.insert(key_of({}, finding.need, finding.have));
    }
  }
  bool has(const std::string& object, ComputeCapability cc, const std::vector<std::string>& have = {}) const {
    return told_.count(key_of(object, target_name(cc), have)) != 0;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::vector<std::string>>;
  static Key key_of(const std::string& object, const std::string& need, std::vector<std::string> have) {
    if (!object.empty()) have.clear();
    std::sort(have.begin(), have.end());
    return {object, need, std::move(have)};
  }
  std::set<Key> told_;
};

// One finding for all modules of the file that nothing serves.
std::optional<Finding> gap_in_file(const Scene& scene, const ObjectRecord& object, const Wanted& wanted) {
  const ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return std::nullopt;
  const auto code = scene.file_gaps.find(object, *file, wanted.cc, driver_of(scene));
  if (code->modules.lacking == 0) return std::nullopt;
  Subject subject;
  subject.object = &object;
  subject.device = wanted.device;
  subject.facts.device = wanted.cc;
  subject.facts.driver = driver_of(scene);
  subject.images.images = code->images;
  subject.images.toolkit = code->toolkit;
  subject.images.scope = ImageScope::module;
  subject.images.source = "read from the file";
  subject.images.line = object.line;
  subject.facts.images = subject.images.images;
  subject.facts.scope = ImageScope::module;
  return latent_finding(scene, subject, code->kernels, code->complete, code->modules);
}

// The file is gone, and the report says what this module of it had.
std::optional<Finding> gap_for(const Scene& scene, const ObjectRecord& object, const GapRecord& gap,
                               ComputeCapability cc) {
  if (find_probing_library(object.path) != nullptr || scene.files.find(object) != nullptr)
    return std::nullopt;
  if (gap.complete && gap.kernels.empty()) return std::nullopt;
  const Subject subject = subject_of(scene, gap, cc);
  if (subject.facts.scope == ImageScope::none) return std::nullopt;
  if (select(subject.facts.images, subject.facts, {}).choice != image::Choice::none) return std::nullopt;
  return latent_finding(scene, subject, gap.kernels, false);
}

// The file is gone, and the report lists what it had.
std::optional<Finding> gap_in_list(const Scene& scene, const ObjectRecord& object, ComputeCapability cc) {
  if (!object.images || object.images->empty() || scene.files.find(object) != nullptr) return std::nullopt;
  if (find_probing_library(object.path) != nullptr) return std::nullopt;
  Subject subject;
  subject.object = &object;
  subject.facts.device = cc;
  subject.facts.driver = driver_of(scene);
  subject.images = find_images({&object, std::nullopt, nullptr, {}}, scene.files);
  subject.facts.images = subject.images.images;
  subject.facts.scope = subject.images.scope;
  if (subject.facts.scope == ImageScope::none) return std::nullopt;
  if (select(subject.facts.images, subject.facts, {}).choice != image::Choice::none) return std::nullopt;
  return latent_finding(scene, subject, {}, false);
}

// Such libraries load what they have, see what fits and choose: that something of it was loaded is enough.
bool served_by_choice(const Scene& scene, const ObjectRecord* object, const GapRecord& gap) {
  if (object == nullptr || !gap.device || find_probing_library(object->path) == nullptr) return false;
  return scene.index.loaded(object->id, gap.device);
}

std::optional<Finding> gap_in_report(const Scene& scene, const GapRecord& gap, const Known& known) {
  const auto need = image::parse_arch(gap.need);
  if (!need) return std::nullopt;
  const ObjectRecord* object = scene.index.object(gap.object);
  if (served_by_choice(scene, object, gap)) return std::nullopt;
  if (known.has(object != nullptr ? object->path : std::string(), need->cc, gap.have)) return std::nullopt;
  // The file tells which of its modules have kernels and what other modules hold; the record of one module
  // does not. Where the file is gone, a module whose kernels are all known and none is lacks nothing: nearly
  // every program of nvcc has such a one.
  if (object != nullptr && scene.files.find(*object) != nullptr)
    return gap_in_file(scene, *object, {need->cc, gap.device ? scene.index.device(gap.device) : nullptr});
  if (gap.complete && gap.kernels.empty()) return std::nullopt;
  Subject subject = subject_of(scene, gap, need->cc);
  if (subject.facts.scope == ImageScope::none) return std::nullopt;
  if (select(subject.facts.images, subject.facts, {}).choice != image::Choice::none) return std::nullopt;
  std::vector<std::string> kernels =
      subject.images.file_images.empty() ? gap.kernels : lacking_kernels(subject.images, subject.facts, {});
  return latent_finding(scene, subject, std::move(kernels), subject.images.complete_kernels);
}

void as_target(Finding& finding) {
  finding.severity = Severity::warning;
  const auto arch = image::parse_arch(finding.need);
  finding.devices = {target_device(arch ? std::optional(arch->cc) : std::nullopt)};
}

}  // namespace

std::vector<Finding> latent_gaps(const Scene& scene, const std::vector<Finding>& failures) {
  std::vector<Finding> out;
  const Known known(failures);
  std::set<std::pair<std::string, std::string>> told;  // object and need
  for (const Wanted& wanted : wanted_of(scene)) {
    for (const ObjectRecord& object : scene.report.objects) {
      if (object.fatbins == 0U || known.has(object.path, wanted.cc)) continue;
      auto finding = gap_in_file(scene, object, wanted);
      if (!finding) continue;
      if (wanted.device == nullptr) as_target(*finding);
      told.emplace(finding->object, finding->need);
      out.push_back(std::move(*finding));
    }
  }
  // Gaps that the shim recorded come second: the files, where they could be read, say the same and more.
  for (const GapRecord& gap : scene.report.gaps) {
    auto finding = gap_in_report(scene, gap, known);
    if (!finding || !told.emplace(finding->object, finding->need).second) continue;
    if (!gap.device) as_target(*finding);
    out.push_back(std::move(*finding));
  }
  for (const Finding& finding : failures) told.emplace(finding.object, finding.need);
  std::vector<ComputeCapability> absent;
  for (const Wanted& wanted : wanted_of(scene)) {
    if (wanted.device == nullptr) absent.push_back(wanted.cc);
  }
  for (const ComputeCapability cc : absent) {
    // What a module has was recorded where it lacked something for a GPU that was there.
    for (const GapRecord& gap : scene.report.gaps) {
      const ObjectRecord* object = gap.device ? scene.index.object(gap.object) : nullptr;
      if (object == nullptr || told.count({object->path, target_name(cc)}) != 0) continue;
      auto finding = gap_for(scene, *object, gap, cc);
      if (!finding) continue;
      as_target(*finding);
      told.emplace(finding->object, finding->need);
      out.push_back(std::move(*finding));
    }
    for (const ObjectRecord& object : scene.report.objects) {
      if (told.count({object.path, target_name(cc)}) != 0) continue;
      auto finding = gap_in_list(scene, object, cc);
      if (!finding) continue;
      as_target(*finding);
      told.emplace(finding->object, finding->need);
      out.push_back(std::move(*finding));
    }
  }
  for (Finding& finding : unjudged(scene, absent, told)) out.push_back(std::move(finding));
  return out;
}

}  // namespace kshim::analysis
