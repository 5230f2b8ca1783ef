// SPDX-License-Identifier: Apache-2.0
// What KSHIM_COVERAGE=1 adds to a target: of all that a file lacks, the kernels that this run did launch.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

constexpr double kLaunchedAndLacking = 0.97;

/// The kernels launched out of one module of a file.
struct Launched {
  const ObjectRecord* object = nullptr;
  std::optional<std::uint64_t> offset;
  std::vector<const CoverageRecord*> kernels;
};

std::vector<Launched> launched_modules(const Scene& scene) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Launched> modules;
  for (const CoverageRecord& row : scene.report.coverage) {
    const ObjectRecord* object = scene.index.object(row.object);
    if (object == nullptr) continue;  // made in memory: its images are in no file
    const ModuleRecord* module = scene.index.module(row.module);
    const auto offset = module != nullptr ? module->offset : std::nullopt;
    Launched& out = modules[{object->id, offset.value_or(~0ULL)}];
    out.object = object;
    out.offset = offset;
    out.kernels.push_back(&row);
  }
  std::vector<Launched> out;
  for (auto& [key, module] : modules) out.push_back(std::move(module));
  return out;
}

struct Gap {
  Subject subject;
  std::vector<std::string> kernels;
  std::uint32_t line = 0;  ///< of the first coverage record among them
};

// A library that has kernels for some GPUs each, and some for this one, launches others there.
bool chooses(const Scene& scene, const ObjectRecord& object, ComputeCapability cc) {
  if (find_probing_library(object.path) == nullptr) return false;
  const ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return false;
  const auto counts = file->image_counts();
  return std::any_of(counts.begin(), counts.end(), [&](const ImageCount& row) {
    return image::judge(row.candidate, {cc, driver_of(scene), {}}).fits;
  });
}

// By object: what lacks code for the target, over all modules of the file.
std::map<const ObjectRecord*, Gap> gaps_for(const Scene& scene, const std::vector<Launched>& modules,
                                            ComputeCapability cc) {
  std::map<const ObjectRecord*, Gap> out;
  for (const Launched& module : modules) {
    Subject subject;
    subject.object = module.object;
    subject.images = find_images({module.object, module.offset, nullptr, {}}, scene.files);
    subject.facts.device = cc;
    subject.facts.driver = driver_of(scene);
    subject.facts.images = subject.images.images;
    subject.facts.scope = subject.images.scope;
    if (subject.images.file_images.empty() || chooses(scene, *module.object, cc)) continue;
    const std::vector<std::string> lacking = lacking_kernels(subject.images, subject.facts, {});
    const std::set<std::string> names(lacking.begin(), lacking.end());
    for (const CoverageRecord* row : module.kernels) {
      if (names.count(row->kernel) == 0) continue;
      const auto [at, first] = out.try_emplace(module.object);
      if (first) {
        at->second.subject = subject;
        at->second.line = row->line;
      }
      at->second.kernels.push_back(row->kernel);
    }
  }
  return out;
}

/// How many kernels were launched, by the path of their file.
using Launches = std::map<std::string, std::size_t>;
Launches launches_of(const Scene& scene) {
  Launches out;
  for (const CoverageRecord& row : scene.report.coverage) {
    if (const ObjectRecord* object = scene.index.object(row.object)) ++out[object->path];
  }
  return out;
}

std::size_t launched_of(const Launches& launches, const std::string& path) {
  const auto found = launches.find(path);
  return found == launches.end() ? 0 : found->second;
}

// The whole file lacks something, of which this run needed nothing.
void not_needed(const Launches& launches, Finding& finding) {
  const std::size_t launched = launched_of(launches, finding.object);
  std::string but = "none of its kernels was launched in this run";
  if (launched != 0 && find_probing_library(finding.object) != nullptr) {
    but = "such a GPU is served by other kernels of it";
  } else if (launched == 1) {
    but = "the one kernel launched in this run has it";
  } else if (launched != 0) {
    but = fmt::format("the {} kernels launched in this run have it", launched);
  }
  finding.severity = Severity::info;
  finding.headline =
      fmt::format("{}: modules without code for {}; {}", basename_of(finding.object), finding.need, but);
}

Finding launched_gap(const Scene& scene, const Launches& launches, const ObjectRecord& object, Gap&& gap) {
  const std::size_t lacking = gap.kernels.size();
  const std::size_t launched = launched_of(launches, object.path);
  Finding finding = latent_finding(scene, gap.subject, std::move(gap.kernels), true, {}, kLaunchedAndLacking);
  finding.severity = Severity::warning;
  finding.devices = {target_device(gap.subject.facts.device)};
  const std::string who = launched == 1 ? "the one kernel launched in this run has no code"
                          : lacking == launched
                              ? fmt::format("none of the {} kernels launched in this run has code", launched)
                              : fmt::format("{} of the {} kernels launched in this run {} no code", lacking,
                                            launched, lacking == 1 ? "has" : "have");
  finding.headline = fmt::format("{}: {} for {}", basename_of(object.path), who, finding.need);
  finding.evidence.push_back({EvidenceId::kernels_launched,
                              "The kernels were launched in this run, as KSHIM_COVERAGE=1 recorded.",
                              location(scene.report, gap.line)});
  return finding;
}

}  // namespace

void add_coverage(const Scene& scene, std::vector<Finding>& latent) {
  if (scene.report.coverage.empty() || scene.options.targets.empty()) return;
  const std::vector<Launched> modules = launched_modules(scene);
  const Launches launches = launches_of(scene);
  std::set<std::pair<std::string, std::string>> told;
  std::vector<Finding> found;
  for (const image::Arch& target : scene.options.targets) {
    for (auto& [object, gap] : gaps_for(scene, modules, target.cc)) {
      found.push_back(launched_gap(scene, launches, *object, std::move(gap)));
      told.insert({found.back().object, found.back().need});
    }
  }
  std::erase_if(latent, [&](const Finding& finding) {
    return told.count({finding.object, finding.need}) != 0;
  });
  // A report that was cut off does not tell what was not launched.
  const bool whole = scene.report.end && scene.report.end->dropped == 0;
  for (Finding& finding : latent) {
    if (whole && finding.severity == Severity::warning && !finding.object.empty())
      not_needed(launches, finding);
  }
  latent.insert(latent.begin(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

}  // namespace kshim::analysis
