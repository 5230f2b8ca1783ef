// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/scan_findings.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/package_fixes.h"
#include "analyzer/advise/printable.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/elf_facts.h"
#include "analyzer/device_code/image_counts.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/places.h"
#include "analyzer/diagnose/rules.h"

namespace kshim::scan {
namespace {

using analysis::Cause;
using analysis::CodeImage;
using analysis::EvidenceId;
using analysis::Finding;
using analysis::ImageFact;
using analysis::Severity;
using image::ImageKind;
using image::Suffix;

std::string target_name(image::Arch target) {
  return std::string(image::to_name(ImageKind::cubin, {target.cc, Suffix::none}).view());
}

// The images of the modules that lack something, each kind of image once.
std::vector<ImageFact> images_of(const analysis::DeviceCode& code,
                                 const std::vector<std::uint32_t>& modules) {
  std::vector<ImageFact> out;
  const auto add = [&](const CodeImage& image) {
    const auto at = std::find_if(out.begin(), out.end(), [&](const ImageFact& row) {
      return analysis::same_program(row.candidate, image.candidate);
    });
    if (at != out.end()) {
      ++at->count;
      return;
    }
    ImageFact fact;
    fact.candidate = image.candidate;
    fact.compression = image.compression;
    out.push_back(fact);
  };
  for (const std::uint32_t index : modules)
    analysis::each_image_of(code.modules[index], [&](std::uint32_t i) { add(code.images[i]); });
  return out;
}

// Why code for other GPUs only is no gap, as a sentence; empty where nothing says so.
std::string other_way(const ObjectFacts& at, std::size_t target, const std::vector<ImageFact>& images) {
  if (const auto* library = analysis::find_probing_library(at.object.name()))
    return fmt::format("That is how {}* is made: it {}.", library->prefix, library->habit);
  if (loaded_by_choice(at.code, at.judgement.lacking[target]))
    return "The program loads these modules by itself, each made for one GPU; what the CUDA runtime "
           "registers is there.";
  if (!images.empty() && analysis::all_locked(images))
    return "All of it is locked to one GPU or family by its suffix: code beside it is for the others.";
  return {};
}

// The images are there, but in a form that this driver is too old for.
bool unreadable(const analysis::Facts& facts) {
  return analysis::diagnose(facts).cause == Cause::driver_too_old_for_image;
}

struct Place {
  std::string object;   ///< the file, or the innermost member
  std::string archive;  ///< the .a that it is a member of; empty otherwise
};

Place place_of(const ScannedObject& object) {
  const auto archive = [](std::string_view name) { return name.ends_with(".a") || name.ends_with(".lib"); };
  if (object.member.empty()) return {object.path, archive(object.path) ? object.path : ""};
  const std::size_t inner = object.member.rfind('!');  // "lib/libfoo.a!foo.o" of a wheel
  if (inner == std::string::npos) return {object.member, archive(object.path) ? object.path : ""};
  const std::string outer = object.member.substr(0, inner);
  return {object.member.substr(inner + 1), archive(outer) ? outer : ""};
}

// The images that do hold kernels which the target lacks, by name.
std::vector<std::string> holders(const ObjectFacts& at, image::ComputeCapability cc) {
  std::vector<std::string> out;
  if (at.kernels == nullptr) return out;
  for (std::size_t target = 0; target < at.judgement.targets.size(); ++target) {
    if (at.judgement.targets[target].target.cc != cc) continue;
    std::vector<bool> holds(at.kernels->labels.size());
    for (const auto& [name, coverage] : at.kernels->kernels) {
      if ((coverage.served >> target & 1) != 0) continue;
      for (const KernelUse& use : coverage.uses) holds[use.label] = true;
    }
    for (std::size_t label = 0; label < holds.size(); ++label) {
      const KernelTable::Label& row = at.kernels->labels[label];
      if (holds[label]) out.emplace_back(image::to_name(row.kind, row.arch).view());
    }
    break;
  }
  return out;
}

void add_advice(const ObjectFacts& at, const analysis::Facts& facts, Finding& finding) {
  analysis::Situation situation;
  situation.cause = finding.cause;
  Place place = place_of(at.object);
  situation.object = std::move(place.object);
  situation.archive = std::move(place.archive);
  situation.object_file =
      !situation.archive.empty() || situation.object.ends_with(".o") || situation.object.ends_with(".obj");
  const analysis::OriginFacts origin = analysis::origin_of(at.object.path);
  situation.origin = origin.origin;
  situation.build_folder = origin.build_folder;
  if (at.object.path.ends_with(".whl")) situation.origin = analysis::Origin::python_extension;
  situation.package = at.object.package.name;
  situation.package_version = at.object.package.version;
  situation.manager = at.object.package.installer;
  situation.python_env = at.object.python;
  situation.links_torch =
      analysis::lies_beside_torch(at.object.member.empty() ? at.object.path : at.object.member) ||
      (at.object.member.empty() && analysis::links_torch(analysis::elf_facts(at.object.path)));
  situation.shared_library = at.shared_library;
  situation.bare = at.code.host == analysis::HostFormat::none;
  situation.relocatable = std::any_of(at.code.images.begin(), at.code.images.end(),
                                      [](const CodeImage& image) { return image.relocatable; });
  situation.device = facts.device;
  situation.driver = facts.driver;
  const analysis::BuiltBy builder = analysis::builder_of(facts.images, at.judgement.toolkit);
  situation.toolkit = builder.toolkit;
  situation.toolkit_how = builder.how;
  situation.newest_cubin = at.judgement.toolkit;
  // What is built anew is all of the file, with all that the modules which lack nothing have.
  const bool part = finding.cause == Cause::latent_gap;
  if (part)
    for (const analysis::ImageCount& row : at.object.images) situation.have.push_back(row.candidate);
  for (const ImageFact& image : facts.images) {
    if (!part) situation.have.push_back(image.candidate);
  }
  if (part && facts.device) {
    situation.kernel_images = holders(at, *facts.device);
    situation.guarded =
        at.kernels != nullptr &&
        std::any_of(at.judgement.targets.begin(), at.judgement.targets.end(), [&](const TargetVerdict& row) {
          return row.target.cc == *facts.device && row.lacking == 0;
        });
  }
  // No list of architectures mends what this driver cannot read.
  if (part && unreadable(facts)) situation.cause = Cause::driver_too_old_for_image;
  situation.removable = analysis::removable_cache_entry(analysis::extension_folder(situation));
  analysis::Advice advice = analysis::advise(situation);
  finding.fixes = std::move(advice.fixes);
  finding.dead_ends = std::move(advice.dead_ends);
}

// Kernels that no module of the file runs on the target.
std::vector<std::string> unserved_kernels(const KernelTable& table, std::size_t target) {
  std::vector<std::string> out;
  for (const auto& [name, coverage] : table.kernels) {
    if ((coverage.served >> target & 1) == 0) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Finding start(const ObjectFacts& at, Cause cause, Severity severity) {
  Finding finding;
  finding.cause = cause;
  finding.severity = severity;
  finding.object = at.object.name();
  finding.package = at.object.package;
  return finding;
}

void describe(const analysis::Facts& facts, const TargetVerdict& verdict, Finding& finding) {
  analysis::Subject subject;
  subject.images.images = facts.images;
  subject.images.scope = analysis::ImageScope::module;
  subject.facts = facts;
  describe_images(subject, finding);
  finding.need = target_name(verdict.target);
  finding.devices = {analysis::target_device(verdict.target.cc)};
}

// Nothing in the file runs on the target: the cause is that of a failure to come.
Finding whole_file(const ObjectFacts& at, const TargetVerdict& verdict, const analysis::Facts& facts) {
  const analysis::Diagnosis diagnosis = analysis::diagnose(facts);
  Finding finding = start(at, diagnosis.cause == Cause::unknown ? Cause::no_image_for_arch : diagnosis.cause,
                          Severity::error);
  finding.confidence = 0.97;
  describe(facts, verdict, finding);
  finding.evidence.push_back({EvidenceId::rule, diagnosis.match.because + ".", {at.object.name()}});
  return finding;
}

// "1 of 2 modules has".
std::string share(std::uint64_t part, std::uint64_t all, std::string_view word) {
  return fmt::format("{} of {} {}", part, analysis::counted(all, word), part == 1 ? "has" : "have");
}

std::string runs(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}", analysis::counted(count, word), count == 1 ? "runs" : "run");
}

Finding part_of_file(const ObjectFacts& at, const TargetVerdict& verdict, const analysis::Facts& facts,
                     const std::vector<std::string>* kernels) {
  Finding finding = start(at, Cause::latent_gap, Severity::warning);
  describe(facts, verdict, finding);
  const std::uint64_t served = verdict.sass + verdict.jit;
  if (kernels != nullptr) {
    finding.confidence = 0.9;
    finding.headline =
        fmt::format("{}: {} no code for {}", analysis::basename_of(finding.object),
                    share(kernels->size(), at.kernels->kernels.size(), "kernel"), finding.need);
    finding.kernels_total = kernels->size();
    finding.evidence.push_back(
        {EvidenceId::kernels_served,
         fmt::format("{} on {}; these are in no image that does.",
                     runs(at.kernels->kernels.size() - kernels->size(), "kernel"), finding.need),
         {at.object.name()}});
  } else {
    finding.confidence = 0.5;
    finding.kernels_complete = false;
    finding.headline = fmt::format("{}: {} no code for {}{}", analysis::basename_of(finding.object),
                                   share(verdict.lacking, served + verdict.lacking, "module"), finding.need,
                                   unreadable(facts) ? " that this driver reads" : "");
    finding.evidence.push_back(
        {EvidenceId::modules_served,
         fmt::format("{} on {}, {} {} not; kshim scan --kernels says which kernels these are.",
                     runs(served, "module"), finding.need, verdict.lacking,
                     verdict.lacking == 1 ? "does" : "do"),
         {at.object.name()},
         {{"served", std::to_string(served)}, {"lacking", std::to_string(verdict.lacking)}}});
  }
  return finding;
}

std::optional<Finding> gap(ObjectFacts& at, std::size_t target, image::Version driver) {
  const TargetVerdict& verdict = at.judgement.targets[target];
  analysis::Facts facts;
  facts.device = verdict.target.cc;
  facts.driver = driver;
  facts.images = images_of(at.code, at.judgement.lacking[target]);
  facts.scope = analysis::ImageScope::module;
  for (ImageFact& image : facts.images) image.toolkit = at.judgement.toolkit;
  std::optional<Finding> finding;
  std::vector<std::string> kernels;
  if (at.kernels != nullptr) {
    kernels = unserved_kernels(*at.kernels, target);
    at.object.targets[target].kernels_lacking = kernels.size();
  }
  if (verdict.nothing_fits()) {
    finding = whole_file(at, verdict, facts);
  } else {
    // Names decide where they are known: what another module runs under the same name lacks nothing.
    const bool lacking = at.kernels != nullptr ? !kernels.empty() : verdict.lacking != 0;
    if (!lacking) return std::nullopt;
    if (facts.images.empty())  // every module is served, but by an image without the kernel
      for (const analysis::ImageCount& row : at.object.images)
        facts.images.push_back(
            {.candidate = row.candidate, .count = row.count, .has_kernel = {}, .toolkit = {}});
    finding = part_of_file(at, verdict, facts, at.kernels != nullptr ? &kernels : nullptr);
    if (const std::string way = other_way(at, target, facts.images); !way.empty()) {
      at.object.targets[target].picks = true;
      finding->severity = Severity::info;
      finding->remarks.push_back(way);
      return finding;
    }
  }
  for (const std::string& name : kernels) finding->kernels.push_back(analysis::demangle(name));
  finding->kernels_complete = at.kernels != nullptr && at.kernels->complete;
  add_advice(at, facts, *finding);
  return finding;
}

Finding damage(const ObjectFacts& at, std::vector<std::string> clauses) {
  constexpr std::size_t kNamed = 8;
  Finding finding = start(at, Cause::invalid_image, Severity::error);
  finding.confidence = 0.9;
  finding.count = clauses.size();
  finding.headline = fmt::format("{}: device code in it is damaged", analysis::basename_of(finding.object));
  const std::size_t more = clauses.size() > kNamed ? clauses.size() - kNamed : 0;
  clauses.resize(clauses.size() - more);
  for (std::string& clause : clauses)
    finding.evidence.push_back({EvidenceId::damage, std::move(clause) + ".", {at.object.name()}});
  if (more != 0)
    finding.evidence.push_back(
        {EvidenceId::more, fmt::format("And {} more like these.", more), {at.object.name()}});
  add_advice(at, {}, finding);
  return finding;
}

}  // namespace

std::vector<Finding> findings_of(ObjectFacts at, image::Version driver) {
  std::vector<Finding> out;
  std::vector<std::string> clauses;
  for (const analysis::Damage& row : at.code.damage)
    if (row.of != analysis::Damage::Of::unknown_kind)
      clauses.push_back(fmt::format("at offset {}, {}", row.offset, row.what));
  clauses.insert(clauses.end(), at.judgement.damage.begin(), at.judgement.damage.end());
  if (!clauses.empty()) out.push_back(damage(at, std::move(clauses)));
  for (std::size_t target = 0; target < at.judgement.targets.size(); ++target) {
    if (auto finding = gap(at, target, driver)) out.push_back(std::move(*finding));
  }
  return out;
}

}  // namespace kshim::scan
