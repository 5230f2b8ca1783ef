// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/advice.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/verbs/scan_parts.h"

namespace kshim::verbs {
using core::Cause;
using core::Finding;
using core::Severity;
using diagnose::Facts;
using diagnose::TargetVerdict;

namespace {

constexpr std::size_t kByThemselves = 4;

void add_images(const std::vector<core::ImageVerdict>& more,
                std::map<std::pair<std::string, std::string>, core::ImageVerdict>& images) {
  for (const core::ImageVerdict& row : more) {
    const auto [at, first] = images.try_emplace({row.kind, row.arch}, row);
    if (!first) at->second.count += row.count;
  }
}

// "_C_cutlass_90a.so" and "sm90/ops.so" say which GPUs they are for, and hold code for those alone.
bool is_named_after_its_gpus(const Finding& finding) {
  const auto names = [&](std::string_view have) {
    const std::string_view number = have.substr(have.find('_') + 1);
    if (number.empty()) return false;
    const bool plain = core::is_digit(number.back());
    for (std::size_t at = finding.object.find(number); at != std::string::npos;
         at = finding.object.find(number, at + 1)) {
      const std::string_view before = std::string_view(finding.object).substr(0, at);
      const std::size_t end = at + number.size();
      const bool whole =
          end == finding.object.size() || std::isalnum(static_cast<unsigned char>(finding.object[end])) == 0;
      const bool sm = before.ends_with("sm") || before.ends_with("sm_");
      if (whole && (sm || (!plain && before.ends_with('_')))) return true;
    }
    return false;
  };
  return !finding.have.empty() && std::ranges::all_of(finding.have, names);
}

bool knows(image::Version driver, image::ComputeCapability cc) {
  const data::GpuRow* gpu = data::find_gpu(cc);
  return !driver.known() || gpu == nullptr || driver >= gpu->first_toolkit;
}

bool serves(image::Version driver, image::Version runtime) {
  return !driver.known() || runtime.major <= driver.major;
}

/// The library that a file is a copy of, of any version: libcupti.so of libcupti.so.2026.2.0; of others their
/// name.
std::string_view file_of(const ScannedObject& object) {
  const std::string_view name = core::basename_of(object.member.empty() ? object.path : object.member);
  const std::size_t so = name.find(".so");
  return so == std::string_view::npos ? name : name.substr(0, so + 3);
}

/// Places of findings that say the same of one file for several GPUs.
using Groups = std::vector<std::vector<std::size_t>>;

/// Of the same file, severity and cause.
Groups of_one_cause(const std::vector<Finding>& findings) {
  Groups out;
  std::map<std::tuple<std::string, Severity, Cause>, std::vector<std::size_t>> known;  // places in `out`
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    if (finding.object.empty() || finding.need.empty()) continue;
    std::vector<std::size_t>& same = known[{finding.object, finding.severity, finding.cause}];
    const auto at = std::ranges::find_if(same, [&](std::size_t group) {
      return findings[out[group].front()].other_objects == finding.other_objects;
    });
    if (at != same.end()) {
      out[*at].push_back(i);
    } else {
      same.push_back(out.size());
      out.push_back({i});
    }
  }
  std::erase_if(out, [](const std::vector<std::size_t>& group) { return group.size() == 1; });
  // Lists of the user's GPUs have any order, groups of loose images none.
  for (std::vector<std::size_t>& group : out)
    std::ranges::sort(group, [&](std::size_t a, std::size_t b) {
      return findings[a].devices.front().cc < findings[b].devices.front().cc;
    });
  return out;
}

/// The most of what any of the targets lacks, where it is not the same for all.
void set_headline(const ScannedObject& object, Finding& finding) {
  std::uint64_t most = 0;
  const std::uint64_t all = object.kernels ? object.kernels->size() : object.kernel_modules;
  for (const TargetVerdict& verdict : object.targets) {
    const std::uint64_t lacking = object.kernels ? verdict.kernels_lacking.value_or(0) : verdict.lacking;
    const bool here = std::ranges::any_of(
        finding.devices, [&](const core::Device& device) { return device.cc == verdict.target.cc; });
    if (!here || lacking <= most) continue;
    most = lacking;
  }
  if (most != 0) finding.headline = gap_headline(most, all, object.kernels ? "kernel" : "module", true);
}

}  // namespace

void LooseFindings::add(Finding finding) {
  Group& group =
      groups_[fmt::format("{} {} {} {}", static_cast<int>(finding.cause), static_cast<int>(finding.severity),
                          finding.need, finding.package.text())];
  const auto at = std::ranges::upper_bound(group.first, finding.object, {}, &Finding::object);
  group.first.insert(at, std::move(finding));
  if (group.first.size() <= kByThemselves) return;
  add_images(group.first.back().images, group.images);
  group.others.push_back(std::move(group.first.back().object));
  group.first.pop_back();
}

void LooseFindings::add(LooseFindings other) {
  for (auto& [key, group] : other.groups_) {
    Group& own = groups_[key];
    for (Finding& finding : group.first) add(std::move(finding));
    std::ranges::move(group.others, std::back_inserter(own.others));
    for (auto& [name, row] : group.images) add_images({std::move(row)}, own.images);
  }
}

std::vector<Finding> LooseFindings::take() && {
  std::vector<Finding> out;
  for (auto& [key, group] : groups_) {
    if (group.others.empty()) {
      std::ranges::move(group.first, std::back_inserter(out));
      continue;
    }
    for (const Finding& each : group.first) add_images(each.images, group.images);
    Finding finding = std::move(group.first.front());
    for (Finding& each : std::span(group.first).subspan(1)) group.others.push_back(std::move(each.object));
    std::ranges::sort(group.others);
    finding.other_objects = std::move(group.others);
    finding.count = 1 + finding.other_objects.size();
    finding.images.clear();
    finding.have.clear();
    for (auto& [name, row] : group.images) {
      finding.have.push_back(row.arch);
      finding.images.push_back(std::move(row));
    }
    const std::string files =
        finding.package.empty()
            ? fmt::format("{{file}} and {}", core::counted(finding.other_objects.size(), "other file"))
            : fmt::format("{} files of {}", finding.count, finding.package.label());
    finding.headline =
        finding.need.empty() || finding.have.empty()
            ? fmt::format(
                  "{}: {}", files,
                  finding.headline.empty() ? std::string(row_of(finding.cause).headline) : finding.headline)
            : fmt::format("{} have no code for {{gpu}}: built for {}", files, core::enumerate(finding.have));
    out.push_back(std::move(finding));
  }
  return out;
}

void excuse_files_for_other_gpus(Scan& scan) {
  std::set<std::pair<std::string, std::string>> served;  // package, target
  std::map<std::string, std::size_t> files;              // by package
  std::map<std::string, ScannedObject*> objects;
  std::set<std::tuple<std::string, std::string_view, std::string>>
      twins;  // package, base name, target: all of it runs
  for (ScannedObject& object : scan.objects) {
    objects.emplace(object.name(), &object);
    if (object.package.empty()) continue;
    ++files[object.package.label()];
    for (const TargetVerdict& verdict : object.targets) {
      if (verdict.sass + verdict.jit == 0) continue;
      served.emplace(object.package.label(), sm_name(verdict.target.cc));
      if (verdict.serves())
        twins.emplace(object.package.label(), file_of(object), sm_name(verdict.target.cc));
    }
  }
  for (Finding& finding : scan.findings) {
    if (finding.severity == Severity::info || finding.need.empty() || finding.package.empty()) continue;
    const auto own = objects.find(finding.object);
    const bool twin = own != objects.end() && finding.other_objects.empty() &&
                      twins.contains({finding.package.label(), file_of(*own->second), finding.need});
    if (finding.severity != Severity::error && !twin) continue;
    const bool named = files[finding.package.label()] > 1 && finding.other_objects.empty() &&
                       is_named_after_its_gpus(finding);
    if (!named && !twin &&
        (finding.cause != Cause::arch_specific_image ||
         !served.contains({finding.package.label(), finding.need})))
      continue;
    finding.severity = Severity::info;
    finding.about.reset();
    finding.remarks.push_back(
        twin    ? fmt::format("Another {} of {} has all its code for this GPU: this copy is for others.",
                              core::basename_of(finding.object), finding.package.label())
        : named ? "Its name says that it is for other GPUs."
                : fmt::format("Other files of {} have code where this one has none: it is for other GPUs.",
                              finding.package.label()));
    finding.other_objects.push_back(finding.object);
    for (const std::string& name : finding.other_objects) {
      const auto at = objects.find(name);
      if (at == objects.end()) continue;
      for (TargetVerdict& verdict : at->second->targets)
        verdict.picks = verdict.picks || sm_name(verdict.target.cc) == finding.need;
    }
    finding.other_objects.pop_back();
  }
}

namespace {

Groups of_one_file(const std::vector<Finding>& findings) {
  const Groups alike = of_one_cause(findings);
  Groups out;
  for (const std::vector<std::size_t>& group : alike) {
    std::map<std::string, std::vector<std::size_t>> by_gist;
    for (const std::size_t i : group)
      by_gist[findings[i].about ? gist_of(advise::advise_on(*findings[i].about)) : std::string()].push_back(
          i);
    for (auto& [gist, same] : by_gist)
      if (same.size() > 1) out.push_back(std::move(same));
  }
  return out;
}

/// One build is advised for all of a group.
void tell_of_each_other(const std::vector<std::size_t>& group, std::vector<Finding>& findings) {
  for (const std::size_t one : group) {
    if (!findings[one].about) continue;
    Facts about = *findings[one].about;
    for (const std::size_t other : group)
      if (other != one) about.gpu.also.push_back(*findings[other].devices.front().cc);
    findings[one].about = std::make_shared<const Facts>(std::move(about));
  }
}

}  // namespace

void drop_what_newer_drivers_read(Scan& scan) {
  std::erase_if(scan.findings, [&](const Finding& finding) {
    return (finding.cause == Cause::driver_too_old_for_image ||
            finding.cause == Cause::ptx_newer_than_driver) &&
           !finding.devices.empty() && !knows(scan.driver, *finding.devices.front().cc);
  });
}

void add_old_driver_findings(Scan& scan) {
  std::ranges::move(old_driver_findings(scan.targets, scan.driver), std::back_inserter(scan.findings));
  LooseFindings files;  // of a package, all are for one runtime
  for (const ScannedObject& object : scan.objects) {
    if (serves(scan.driver, object.runtime)) continue;
    Facts facts;
    facts.call.codes = {core::kInsufficientDriver};
    facts.driver.cuda = scan.driver;
    facts.driver.runtime = object.runtime;
    const diagnose::Diagnosis diagnosis = diagnosis_of(facts);
    Finding finding;
    finding.cause = diagnosis.cause;
    finding.severity = Severity::error;
    finding.confidence = diagnosis.match.confidence;
    finding.object = object.name();
    finding.package = object.package;
    finding.evidence.push_back({core::EvidenceId::rule, diagnosis.match.because + ".", {finding.object}});
    Facts at = facts_about(finding, std::move(facts));
    at.call.code = core::kInsufficientDriver;
    at.package.name = object.package.name;
    at.package.version = object.package.version;
    at.package.manager = object.package.installer;
    finding.about = std::make_shared<const Facts>(std::move(at));
    files.add(std::move(finding));
  }
  std::ranges::move(std::move(files).take(), std::back_inserter(scan.findings));
}

void refuse_by_driver(Scan& scan) {
  for (ScannedObject& object : scan.objects)
    for (TargetVerdict& verdict : object.targets) {
      if (knows(scan.driver, verdict.target.cc) && serves(scan.driver, object.runtime)) continue;
      verdict.lacking += verdict.sass + verdict.jit;
      verdict.sass = verdict.jit = 0;
      verdict.picks = false;
      if (object.kernels) verdict.kernels_lacking = object.kernels->size();
    }
}

void merge_gpus_of_files(Scan& scan) {
  std::vector<Finding>& findings = scan.findings;
  const Groups groups = of_one_file(findings);
  std::map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<bool> gone(findings.size());
  for (const std::vector<std::size_t>& group : groups) {
    tell_of_each_other(group, findings);
    // In the place of the first that was shown.
    const std::size_t place = *std::ranges::min_element(group);
    Finding sum = std::move(findings[group.front()]);
    bool differ = false;
    for (const std::size_t i : std::span(group).subspan(1)) {
      differ = differ || findings[i].headline != sum.headline;
      diagnose::merge_gpus(sum, std::move(findings[i]));
    }
    const auto object = objects.find(sum.object);
    if (differ && sum.cause == Cause::latent_gap && object != objects.end())
      set_headline(*object->second, sum);
    for (const std::size_t i : group) gone[i] = i != place;
    findings[place] = std::move(sum);
  }
  std::vector<Finding> left;
  for (std::size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) left.push_back(std::move(findings[i]));
  findings = std::move(left);
}

}  // namespace kshim::verbs
