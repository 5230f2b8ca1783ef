// SPDX-License-Identifier: Apache-2.0
#include "analyzer/scan/findings.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/analysis/failure_finding.h"
#include "analyzer/fixes/advice.h"
#include "analyzer/knowledge/knowledge.h"
#include "analyzer/model/places.h"
#include "analyzer/rules/rules.h"
#include "analyzer/text/text.h"

namespace kshim::scan {
namespace {

using analysis::Cause;
using analysis::CodeImage;
using analysis::CodeModule;
using analysis::Finding;
using analysis::ImageFact;
using analysis::Severity;
using image::ImageKind;
using image::Suffix;

std::string target_name(image::Arch target) {
  return std::string(image::to_name(ImageKind::cubin, {target.cc, Suffix::none}).view());
}

bool same(const ImageFact& known, const CodeImage& image) {
  return known.candidate.kind == image.candidate.kind && known.candidate.arch == image.candidate.arch &&
         known.candidate.isa == image.candidate.isa;
}

// The images of the modules that lack something, each kind of image once.
std::vector<ImageFact> images_of(const analysis::DeviceCode& code,
                                 const std::vector<std::uint32_t>& modules) {
  std::vector<ImageFact> out;
  const auto add = [&](const CodeImage& image) {
    const auto at =
        std::find_if(out.begin(), out.end(), [&](const ImageFact& row) { return same(row, image); });
    if (at != out.end()) {
      ++at->count;
      return;
    }
    ImageFact fact;
    fact.candidate = image.candidate;
    fact.compression = image.compression;
    out.push_back(fact);
  };
  for (const std::uint32_t index : modules) {
    const CodeModule& module = code.modules[index];
    for (std::uint32_t i = 0; i < module.count; ++i) add(code.images[module.first + i]);
    for (const std::uint32_t part : module.parts) add(code.images[part]);
  }
  return out;
}

// Code that was deliberately locked to one architecture beside code that was not: the program has another
// way.
bool all_locked(const std::vector<ImageFact>& images) {
  return std::all_of(images.begin(), images.end(), [](const ImageFact& image) {
    return image.candidate.arch.suffix != Suffix::none || image.candidate.kind == ImageKind::ltoir;
  });
}

// Why code for other GPUs only is no gap, as a sentence; empty where nothing says so.
std::string other_way(const ScannedObject& object, const std::vector<ImageFact>& images) {
  if (const auto* library = analysis::find_probing_library(object.name()))
    return fmt::format("That is how {}* is made: it {}.", library->prefix, library->habit);
  if (!images.empty() && all_locked(images))
    return "All of it is locked to one GPU or family by its suffix: code beside it is for the others.";
  return {};
}

void add_advice(const ObjectFacts& at, const analysis::Facts& facts, Finding& finding) {
  analysis::Situation situation;
  situation.cause = finding.cause;
  situation.object = at.object.member.empty() ? at.object.path : at.object.member;
  const analysis::OriginFacts origin = analysis::origin_of(at.object.path);
  situation.origin = origin.origin;
  situation.build_folder = origin.build_folder;
  const bool wheel = at.object.path.ends_with(".whl");
  if (wheel) situation.origin = analysis::Origin::python_extension;
  if (situation.origin == analysis::Origin::installed)
    situation.package = at.object.package.substr(0, at.object.package.find(' '));
  situation.shared_library = at.shared_library;
  situation.bare = at.code.host == analysis::HostFormat::none;
  situation.relocatable = std::any_of(at.code.images.begin(), at.code.images.end(),
                                      [](const CodeImage& image) { return image.relocatable; });
  situation.device = facts.device;
  situation.driver = facts.driver;
  situation.toolkit = at.judgement.toolkit;
  situation.toolkit_how = "its cubins say so";
  if (!situation.toolkit.known()) {
    image::Version isa;
    for (const ImageFact& image : facts.images) {
      if (image.candidate.kind == ImageKind::ptx) isa = std::max(isa, image.candidate.isa);
    }
    if (const auto* row = isa.known() ? analysis::toolkit_of_isa(isa) : nullptr) {
      situation.toolkit = row->version;
      situation.toolkit_how = fmt::format("its PTX is of version {}", image::to_name(isa).view());
    }
  }
  for (const ImageFact& image : facts.images) situation.have.push_back(image.candidate);
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
  finding.headline = analysis::row_of(cause).headline;
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
  finding.devices = {"target " + finding.need};
}

// Nothing in the file runs on the target: the cause is that of a failure to come.
Finding whole_file(const ObjectFacts& at, const TargetVerdict& verdict, const analysis::Facts& facts) {
  const analysis::Diagnosis diagnosis = analysis::diagnose(facts);
  Finding finding = start(at, diagnosis.cause == Cause::unknown ? Cause::no_image_for_arch : diagnosis.cause,
                          Severity::error);
  finding.confidence = 0.97;
  describe(facts, verdict, finding);
  finding.evidence.push_back({diagnosis.match.because + ".", at.object.name()});
  return finding;
}

Finding part_of_file(const ObjectFacts& at, const TargetVerdict& verdict, const analysis::Facts& facts,
                     const std::vector<std::string>* kernels) {
  Finding finding = start(at, Cause::latent_gap, Severity::warning);
  describe(facts, verdict, finding);
  const std::uint64_t served = verdict.sass + verdict.jit;
  if (kernels != nullptr) {
    finding.confidence = 0.9;
    finding.headline =
        fmt::format("{}: {} of {} have no code for {}", analysis::basename_of(finding.object),
                    analysis::counted(kernels->size(), "kernel"), at.kernels->kernels.size(), finding.need);
    finding.kernels_total = kernels->size();
    finding.evidence.push_back(
        {fmt::format("{} run on {}; these are in no image that does.",
                     analysis::counted(at.kernels->kernels.size() - kernels->size(), "kernel"), finding.need),
         at.object.name()});
  } else {
    finding.confidence = 0.5;
    finding.kernels_complete = false;
    finding.headline =
        fmt::format("{}: {} of {} have no code for {}", analysis::basename_of(finding.object),
                    analysis::counted(verdict.lacking, "module"), served + verdict.lacking, finding.need);
    finding.evidence.push_back(
        {fmt::format("{} run on {}, {} do not; kshim scan --kernels says which kernels these are.",
                     analysis::counted(served, "module"), finding.need, verdict.lacking),
         at.object.name()});
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
    if (const std::string way = other_way(at.object, facts.images); !way.empty()) {
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
  for (std::string& clause : clauses) finding.evidence.push_back({std::move(clause) + ".", at.object.name()});
  if (more != 0) finding.evidence.push_back({fmt::format("And {} more like these.", more), at.object.name()});
  add_advice(at, {}, finding);
  return finding;
}

}  // namespace

std::vector<Finding> findings_of(ObjectFacts at, image::Version driver) {
  std::vector<Finding> out;
  std::vector<std::string> clauses;
  for (const analysis::Damage& row : at.code.damage)
    clauses.push_back(fmt::format("at offset {}, {}", row.offset, row.what));
  clauses.insert(clauses.end(), at.judgement.damage.begin(), at.judgement.damage.end());
  if (!clauses.empty()) out.push_back(damage(at, std::move(clauses)));
  for (std::size_t target = 0; target < at.judgement.targets.size(); ++target) {
    if (auto finding = gap(at, target, driver)) out.push_back(std::move(*finding));
  }
  return out;
}

}  // namespace kshim::scan
