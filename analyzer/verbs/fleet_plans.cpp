// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/fleet_plans.h"

#include "analyzer/core/text.h"
#include "analyzer/diagnose/scene.h"

namespace kshim::verbs {
using advise::FleetPlan;
using core::Finding;
using device_code::ImageCount;
using diagnose::TargetVerdict;

namespace {

using image::ComputeCapability;

constexpr std::size_t kMaxListed = 4096;
constexpr std::size_t kMaxPlans = 256;
constexpr std::size_t kMaxBreaks = 256;

std::vector<ComputeCapability> fleet_of(const Analysis& analysis, const diagnose::AnalysisOptions& options) {
  std::set<ComputeCapability> out;
  for (const image::Arch& target : options.targets) out.insert(target.cc);
  if (out.empty()) {
    for (const DeviceSummary& device : analysis.devices)
      if (device.cc) out.insert(*device.cc);
    if (out.size() < 2 || options.assume_cc) return {};  // that is what the finding's own fix says
  }
  return {out.begin(), out.end()};
}

struct File {
  std::string path, build_id;
  std::set<ComputeCapability> lacking;
  const Finding* first = nullptr;
};

std::vector<File> files_of(const Analysis& analysis) {
  std::vector<File> out;
  std::unordered_map<std::string, std::size_t> known;
  for (const Finding& finding : analysis.findings) {
    if (!is_for_fleet(finding)) continue;
    const auto need = image::parse_arch(finding.need);
    if (!need) continue;
    const auto [at, first] = known.try_emplace(finding.object + '\n' + finding.build_id, out.size());
    if (first) out.push_back({finding.object, finding.build_id, {}, &finding});
    out[at->second].lacking.insert(need->cc);
  }
  return out;
}

std::vector<ImageCount> images_of(const File& file, const ListedImages& listed, input::ObjectFiles& files) {
  input::ObjectRecord object;
  object.path = file.path;
  object.build_id = file.build_id;
  if (const device_code::ObjectFile* found = files.find(object)) return found->image_counts();
  if (const auto* rows = listed.find(file.path, file.build_id)) return *rows;
  std::vector<ImageCount> out;
  for (const core::ImageVerdict& row : file.first->images)
    if (row.candidate.kind != image::ImageKind::ltoir) out.push_back({row.candidate, row.count, 0});
  return out;
}

void add_breaks(const Analysis& analysis, FleetPlan& plan) {
  for (const DeviceSummary& device : analysis.devices) {
    if (!device.cc || !std::ranges::binary_search(plan.lacking, *device.cc)) continue;
    ++plan.breaks_total;
    if (plan.breaks.size() == kMaxBreaks) continue;
    plan.breaks.push_back({device.host, device.ordinal,
                           device.name.empty() ? std::string("unnamed") : device.name, *device.cc});
  }
}

}  // namespace

bool is_for_fleet(const Finding& finding) {
  if (!has_trait(finding.cause, core::cause_trait::arch_list) || finding.object.empty()) return false;
  // Nobody but NVIDIA builds its libraries, nor the objects of its archives.
  for (std::string_view path = finding.object;; path = path.substr(0, path.rfind('!'))) {
    if (data::find_vendor_library(path) != nullptr) return false;
    if (path.rfind('!') == std::string_view::npos) return true;
  }
}

void ListedImages::add(const input::Report& report, const std::vector<Finding>& findings) {
  std::set<std::pair<std::string, std::string>> wanted;
  for (const Finding& finding : findings)
    if (is_for_fleet(finding)) wanted.emplace(finding.object, finding.build_id);
  if (wanted.empty()) return;
  for (const input::ObjectRecord& row : report.objects) {
    const std::pair key(row.path, row.build_id);
    if (!row.images || images_.size() == kMaxListed || wanted.count(key) == 0 || images_.count(key) != 0)
      continue;
    std::vector<ImageCount>& out = images_[key];
    for (const input::ImageEntry& image : *row.images) {
      const auto candidate = diagnose::candidate_of(image.arch, image.isa);
      if (candidate && candidate->kind != image::ImageKind::ltoir && out.size() < 256)
        out.push_back({*candidate, image.count, image.bytes});
    }
  }
}

const std::vector<ImageCount>* ListedImages::find(const std::string& path,
                                                  const std::string& build_id) const {
  const auto found = images_.find({path, build_id});
  return found == images_.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<FleetPlan> fleet_plans(const Analysis& analysis, const diagnose::AnalysisOptions& options,
                                   const ListedImages& listed, input::ObjectFiles& files) {
  std::vector<FleetPlan> out;
  const std::vector<ComputeCapability> gpus = fleet_of(analysis, options);
  if (gpus.empty()) return out;
  for (const File& file : files_of(analysis)) {
    if (out.size() == kMaxPlans) break;
    auto plan = advise::plan_fleet(
        {gpus, {file.lacking.begin(), file.lacking.end()}, images_of(file, listed, files)});
    if (!plan) continue;
    plan->object = file.path;
    plan->build_id = file.build_id;
    add_breaks(analysis, *plan);
    out.push_back(std::move(*plan));
  }
  return out;
}

namespace {

using image::ComputeCapability;

/// The lowest that the code begins at which a target lacks; none where nothing is known of it.
std::optional<ComputeCapability> floor_of(const Finding& finding) {
  std::optional<ComputeCapability> out;
  for (const core::ImageVerdict& image : finding.images)
    if (image.candidate.kind == image::ImageKind::cubin || image.candidate.kind == image::ImageKind::ptx)
      out = std::min(out.value_or(image.candidate.arch.cc), image.candidate.arch.cc);
  return out;
}

bool runs_on(const ScannedObject& object, ComputeCapability cc) {
  return std::ranges::any_of(object.targets, [&](const TargetVerdict& verdict) {
    return verdict.target.cc == cc && verdict.sass + verdict.jit != 0;
  });
}

/// Code that begins above a GPU, built by people who do build for that GPU: as a rule its source needs what
/// the newer ones have. So does what is locked to one of them. A small file beside it may be somebody else's
/// (MAGMA in PyTorch's libtorch_cuda_linalg.so) and tells nothing.
bool is_for_newer(const Scan& scan, const ScannedObject& object, const Finding& finding,
                  ComputeCapability cc) {
  const auto floor = floor_of(finding);
  if (!floor || *floor <= cc) return false;
  if (finding.cause == core::Cause::arch_specific_image || runs_on(object, cc)) return true;
  return !object.package.empty() && std::ranges::any_of(scan.objects, [&](const ScannedObject& other) {
    return other.package == object.package && other.modules > object.modules && runs_on(other, cc);
  });
}

/// Thousands of loose images are a program's, which picks one by GPU.
bool is_for_plan(const Finding& finding) {
  return finding.severity != core::Severity::info && !finding.need.empty() && finding.other_objects.empty() &&
         is_for_fleet(finding);
}

struct Lacking {
  const ScannedObject* object = nullptr;
  std::vector<ComputeCapability> targets;
  std::vector<ComputeCapability> left_out;
};

}  // namespace

void note_code_for_newer_gpus(Scan& scan) {
  std::unordered_map<std::string, ScannedObject*> objects;
  for (ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  for (Finding& finding : scan.findings) {
    const auto found = objects.find(finding.object);
    if (found == objects.end() || !is_for_plan(finding)) continue;
    ScannedObject& object = *found->second;
    for (TargetVerdict& verdict : object.targets)
      if (sm_name(verdict.target.cc) == finding.need)
        verdict.for_newer = is_for_newer(scan, object, finding, verdict.target.cc);
    const bool newer = std::ranges::any_of(object.targets, [&](const TargetVerdict& verdict) {
      return verdict.for_newer && sm_name(verdict.target.cc) == finding.need;
    });
    if (newer && finding.cause != core::Cause::arch_specific_image)
      finding.remarks.push_back(
          fmt::format("What lacks it begins at {}, beside code for older GPUs: its source may need {}.",
                      name(*floor_of(finding)), name(*floor_of(finding))));
  }
}

std::vector<FleetPlan> fleet_plans(const Scan& scan) {
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<Lacking> lacking;
  std::unordered_map<const ScannedObject*, std::size_t> place;
  // In the order of the findings: the most severe first.
  for (const Finding& finding : scan.findings) {
    const auto object = objects.find(finding.object);
    if (object == objects.end() || !is_for_plan(finding)) continue;
    const auto [at, first] = place.try_emplace(object->second, lacking.size());
    if (first) lacking.push_back({object->second, {}, {}});
    Lacking& row = lacking[at->second];
    for (const core::Device& device : finding.devices)
      for (const TargetVerdict& verdict : object->second->targets) {
        if (verdict.target.cc != device.cc) continue;
        if (!verdict.for_newer)
          row.targets.push_back(*device.cc);
        else if (!runs_on(*object->second, *device.cc))
          row.left_out.push_back(*device.cc);
        break;
      }
  }
  std::vector<FleetPlan> out;
  for (auto& [object, targets, left_out] : lacking) {
    if (out.size() == kMaxPlans) break;
    if (targets.empty()) continue;
    std::vector<ComputeCapability> gpus;
    for (const image::Arch& target : scan.targets)
      if (!core::contains(left_out, target.cc)) gpus.push_back(target.cc);
    auto plan = advise::plan_fleet({std::move(gpus), std::move(targets), object->images});
    if (!plan) continue;
    plan->object = object->name();
    plan->build_id = object->build_id;
    out.push_back(std::move(*plan));
  }
  return out;
}

}  // namespace kshim::verbs
