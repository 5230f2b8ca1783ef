// SPDX-License-Identifier: Apache-2.0
// Gaps that caused no failure yet: the files of the report read for the present GPUs, --target and
// KSHIM_TARGET, and what the shim recorded of images that lie in no file.
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::diagnose {
using core::Finding;
using core::Severity;
using data::find_probing_library;
using input::CoverageRecord;
using input::GapRecord;
using input::ObjectRecord;

namespace {

using image::ComputeCapability;

struct Wanted {
  ComputeCapability cc;
  const input::DeviceRecord* device = nullptr;  ///< nullptr for a target
};

/// --target, and KSHIM_TARGET of the process.
std::vector<image::Arch> targets_of(const Scene& scene) {
  std::vector<image::Arch> out = scene.options.targets;
  const auto asked = scene.report.process.env.find("KSHIM_TARGET");
  std::string_view rest = asked == scene.report.process.env.end() ? std::string_view() : asked->second;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(",; "), rest.size());
    const auto arch = image::parse_arch(rest.substr(0, end));
    if (arch && std::ranges::none_of(out, [&](image::Arch row) { return row.cc == arch->cc; }))
      out.push_back(*arch);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

// Each compute capability once; a target that is present as a GPU is a target all the same.
std::vector<Wanted> wanted_of(const Scene& scene) {
  std::vector<Wanted> out;
  const auto add = [&](ComputeCapability cc, const input::DeviceRecord* device) {
    if (std::ranges::none_of(out, [&](const Wanted& row) { return row.cc == cc; }))
      out.push_back({cc, device});
  };
  for (const image::Arch& target : targets_of(scene)) add(target.cc, nullptr);
  if (scene.options.assume_cc) {
    add(*scene.options.assume_cc, nullptr);
  } else {
    for (const input::DeviceRecord& row : scene.report.devices) {
      if (const auto arch = image::parse_arch(row.compute_capability)) add(arch->cc, &row);
    }
  }
  return out;
}

/// Gaps that failures already reported, by object and missing architecture. Loose images have no path and are
/// identified by content.
class Known {
 public:
  explicit Known(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.severity != Severity::error) continue;
      told_.insert(key_of(finding.object, finding.need, finding.have));
      // The process had it in memory; that it is a cache's file was found out afterwards.
      if (finding.cause == core::Cause::stale_cache_artifact)
        told_.insert(key_of({}, finding.need, finding.have));
    }
  }
  bool has(const std::string& object, ComputeCapability cc, const std::vector<std::string>& have = {}) const {
    return told_.count(key_of(object, sm_name(cc), have)) != 0;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::vector<std::string>>;
  static Key key_of(const std::string& object, const std::string& need, std::vector<std::string> have) {
    if (!object.empty()) have.clear();
    std::ranges::sort(have);
    return {object, need, std::move(have)};
  }
  std::set<Key> told_;
};

// One finding for all modules of the file that nothing serves.
std::optional<Finding> gap_in_file(const Scene& scene, const ObjectRecord& object, const Wanted& wanted) {
  const device_code::ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return std::nullopt;
  const auto code = scene.file_gaps.find(object, *file, wanted.cc, driver_of(scene));
  if (code->modules.lacking == 0) return std::nullopt;
  Facts::Images images;
  images.list = code->images;
  images.toolkit = code->toolkit;
  images.scope = ImageScope::module;
  images.source =
      std::make_shared<const ImageSource>(ImageSource{"read from the file", object.line, {}, false});
  InReport subject = subject_of(scene, object, wanted.cc, std::move(images));
  subject.device = wanted.device;
  return latent_finding(scene, subject, code->kernels, code->complete, code->modules);
}

// The file is gone; the report says what a module of it had.
std::optional<Finding> gap_for(const Scene& scene, const GapRecord& gap, ComputeCapability cc) {
  if (gap.complete && gap.kernels.empty()) return std::nullopt;
  const InReport subject = subject_of(scene, gap, cc);
  if (!lacks(subject.facts)) return std::nullopt;
  return latent_finding(scene, subject, gap.kernels, false);
}

// The file is gone; the report lists what it had.
std::optional<Finding> gap_in_list(const Scene& scene, const ObjectRecord& object, ComputeCapability cc) {
  if (!object.images || object.images->empty()) return std::nullopt;
  const InReport subject =
      subject_of(scene, object, cc, find_images({&object, std::nullopt, nullptr, {}}, scene.files));
  if (!lacks(subject.facts)) return std::nullopt;
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
  return gap_for(scene, gap, need->cc);
}

void as_target(Finding& finding) {
  finding.severity = Severity::warning;
  const auto arch = image::parse_arch(finding.need);
  finding.devices = {core::target_device(arch ? std::optional(arch->cc) : std::nullopt)};
}

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
    const input::ModuleRecord* module = scene.index.module(row.module);
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
  InReport subject;
  std::vector<std::string> kernels;
  std::uint32_t line = 0;  ///< of the first coverage record among them
};

// A library that has kernels for some GPUs each, and some for this one, launches others there.
bool chooses(const Scene& scene, const ObjectRecord& object, ComputeCapability cc) {
  if (find_probing_library(object.path) == nullptr) return false;
  const device_code::ObjectFile* file = scene.files.find(object);
  if (file == nullptr) return false;
  const auto counts = file->image_counts();
  return std::ranges::any_of(counts, [&](const device_code::ImageCount& row) {
    return image::judge(row.candidate, {cc, driver_of(scene), {}}).fits;
  });
}

// By object: what lacks code for the target, over all modules of the file.
std::map<const ObjectRecord*, Gap> gaps_for(const Scene& scene, const std::vector<Launched>& modules,
                                            ComputeCapability cc) {
  std::map<const ObjectRecord*, Gap> out;
  for (const Launched& module : modules) {
    const InReport subject = subject_of(
        scene, *module.object, cc, find_images({module.object, module.offset, nullptr, {}}, scene.files));
    if (subject.facts.images.source->read.empty() || chooses(scene, *module.object, cc)) continue;
    const std::vector<std::string> lacking = lacking_kernels(subject.facts, {});
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

// The whole file lacks something that this run did not need.
void not_needed(std::size_t launched, Finding& finding) {
  std::string but = "none of its kernels was launched in this run";
  if (launched != 0 && find_probing_library(finding.object) != nullptr) {
    but = "such a GPU is served by other kernels of it";
  } else if (launched == 1) {
    but = "the one kernel launched in this run has it";
  } else if (launched != 0) {
    but = fmt::format("the {} kernels launched in this run have it", launched);
  }
  finding.severity = Severity::info;
  finding.headline = fmt::format("{}: modules without code for {}; {}", core::basename_of(finding.object),
                                 finding.need, but);
}

Finding launched_gap(const Scene& scene, std::size_t launched, const ObjectRecord& object, Gap&& gap) {
  const std::size_t lacking = gap.kernels.size();
  Finding finding = latent_finding(scene, gap.subject, std::move(gap.kernels), true, {}, kLaunchedAndLacking);
  finding.severity = Severity::warning;
  finding.devices = {core::target_device(gap.subject.facts.gpu.cc)};
  const std::string who = launched == 1 ? "the one kernel launched in this run has no code"
                          : lacking == launched
                              ? fmt::format("none of the {} kernels launched in this run has code", launched)
                              : fmt::format("{} of the {} kernels launched in this run {} no code", lacking,
                                            launched, lacking == 1 ? "has" : "have");
  finding.headline = fmt::format("{}: {} for {}", core::basename_of(object.path), who, finding.need);
  finding.evidence.push_back({core::EvidenceId::kernels_launched,
                              "The kernels were launched in this run, as KSHIM_COVERAGE=1 recorded.",
                              location(scene.report, gap.line)});
  return finding;
}

}  // namespace

std::vector<Finding> latent_gaps(const Scene& scene, const std::vector<Finding>& failures) {
  std::vector<Finding> out;
  const Known known(failures);
  std::set<std::pair<std::string, std::string>> told;  // object and need
  const auto add = [&](std::optional<Finding> finding, bool target) {
    if (!finding) return;
    if (target) as_target(*finding);
    told.emplace(finding->object, finding->need);
    out.push_back(std::move(*finding));
  };
  std::vector<ComputeCapability> absent;
  for (const Wanted& wanted : wanted_of(scene)) {
    if (wanted.device == nullptr) absent.push_back(wanted.cc);
    for (const ObjectRecord& object : scene.report.objects)
      if (object.fatbins != 0U && !known.has(object.path, wanted.cc))
        add(gap_in_file(scene, object, wanted), wanted.device == nullptr);
  }
  // Gaps that the shim recorded come second: the files, where they could be read, say the same and more.
  for (const GapRecord& gap : scene.report.gaps) {
    auto finding = gap_in_report(scene, gap, known);
    if (finding && !told.contains({finding->object, finding->need})) add(std::move(finding), !gap.device);
  }
  for (const Finding& finding : failures) told.emplace(finding.object, finding.need);
  const auto unknown = [&](const ObjectRecord* object, ComputeCapability cc) {
    return object != nullptr && !told.contains({object->path, sm_name(cc)}) &&
           find_probing_library(object->path) == nullptr && scene.files.find(*object) == nullptr;
  };
  for (const ComputeCapability cc : absent) {
    // What a module has was recorded where it lacked something for a GPU that was there.
    for (const GapRecord& gap : scene.report.gaps)
      if (gap.device && unknown(scene.index.object(gap.object), cc)) add(gap_for(scene, gap, cc), true);
    for (const ObjectRecord& object : scene.report.objects)
      if (unknown(&object, cc)) add(gap_in_list(scene, object, cc), true);
  }
  for (Finding& finding : unjudged(scene, absent, told)) out.push_back(std::move(finding));
  return out;
}

void add_coverage(const Scene& scene, std::vector<Finding>& latent) {
  if (scene.report.coverage.empty()) return;
  const std::vector<image::Arch> targets = targets_of(scene);
  if (targets.empty()) return;
  const std::vector<Launched> modules = launched_modules(scene);
  Launches launches = launches_of(scene);
  std::set<std::pair<std::string, std::string>> told;
  std::vector<Finding> found;
  for (const image::Arch& target : targets) {
    for (auto& [object, gap] : gaps_for(scene, modules, target.cc)) {
      found.push_back(launched_gap(scene, launches[object->path], *object, std::move(gap)));
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
      not_needed(launches[finding.object], finding);
  }
  latent.insert(latent.begin(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

}  // namespace kshim::diagnose
