// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render.h"

#include "analyzer/render/ci_formats.h"
#include "analyzer/render/finding_page.h"

namespace kshim::render {
using core::Finding;
using device_code::ImageCount;
using input::ReadNote;
using verbs::Scan;
using verbs::ScannedObject;

namespace {

void add_images(const std::vector<ImageCount>& more, std::vector<ImageCount>& images) {
  for (const ImageCount& row : more) {
    const auto at = std::ranges::find_if(images, [&](const ImageCount& known) {
      return known.candidate.kind == row.candidate.kind && known.candidate.arch == row.candidate.arch;
    });
    if (at == images.end()) {
      images.push_back(row);
    } else {
      at->count += row.count;
      at->bytes += row.bytes;
    }
  }
}

void add_verdict(const diagnose::TargetVerdict& more, RowVerdict& sum) {
  const bool first_gap = sum.serves() && sum.lacking == 0;
  if (more.lacking != 0) sum.picks = first_gap ? more.picks : sum.picks && more.picks;
  sum.sass += more.sass;
  sum.jit += more.jit;
  sum.lacking += more.lacking;
  if (more.kernels_lacking) sum.kernels_lacking = sum.kernels_lacking.value_or(0) + *more.kernels_lacking;
  const Outcome outcome = outcome_of(more);
  sum.worst = std::max(sum.worst, outcome);
  if (outcome == Outcome::none) ++sum.files_none;
  if (outcome != Outcome::no_kernels) ++sum.files;
}

// The file's name without the folders that all rows have in common.
std::size_t common_folder(const Scan& scan) {
  if (scan.objects.empty()) return 0;
  std::string common = scan.objects.front().name();
  for (const ScannedObject& object : scan.objects) {
    const std::string name = object.name();
    const auto ends = std::mismatch(common.begin(), common.end(), name.begin(), name.end());
    common.erase(ends.first, common.end());
  }
  const std::size_t slash = common.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

// An archive may hold several members of one name, and they are not the same.
void number_namesakes(std::vector<MatrixRow>& rows) {
  struct Seen {
    std::size_t all = 0;
    std::size_t so_far = 0;
  };
  std::map<std::string, Seen> seen;
  for (const MatrixRow& row : rows) ++seen[row.name].all;
  for (MatrixRow& row : rows) {
    Seen& same = seen.at(row.name);
    if (same.all > 1) row.name += fmt::format(" ({} of {})", ++same.so_far, same.all);
  }
}

/// The findings with the file that is on disk, and the member inside it.
std::vector<PlacedFinding> placed(const Scan& scan, const SourceRoot& root) {
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<PlacedFinding> out =
      placed(scan.findings, root, scan.objects.empty() ? std::string() : scan.objects.front().path);
  for (PlacedFinding& placed : out) {
    const auto found = objects.find(placed.finding.object);
    if (found != objects.end()) placed.place = {found->second->path, 0, found->second->member};
  }
  return out;
}

Json verdict_json(const diagnose::TargetVerdict& from) {
  Json out;
  KSHIM_JSON_FIELDS(target, sass, jit, lacking)
  const std::string_view verdict = to_name(outcome_of(from));
  out["verdict"] = verdict.empty() ? Json(nullptr) : Json(verdict);
  return out;
}

Json object_json(const ScannedObject& from, bool sizes) {
  Json out;
  KSHIM_JSON_FIELDS(path, member, build_id, fatbins)
  if (!from.sha256.empty()) out["sha256"] = from.sha256;
  out["images"] = json_list(from.images, [](const ImageCount& image) {
    Json row = image_json(image);
    const image::Version cuda = image.candidate.kind == image::ImageKind::ptx
                                    ? image::cuda_of_ptx_isa(image.candidate.isa)
                                    : image::Version();
    row["cuda"] = json_of(cuda);
    row["stored"] = image.stored;
    return row;
  });
  if (from.kernels) out["kernels"] = json_of(*from.kernels);
  out["format"] = json_of(from.format);
  out["package"] = json_of(from.package.label());
  out["package_info"] = json_of(from.package);
  KSHIM_JSON_FIELDS(bytes, modules)
  out["runtime"] = from.runtime.known() ? Json(from.runtime.major) : Json(nullptr);
  out["targets"] = json_list(from.targets, verdict_json);
  if (from.expected) out["expected"] = json_of(*from.expected);
  if (sizes) out["largest_modules"] = json_of(from.largest);
  return out;
}

constexpr const char* kWhole = "device code";
constexpr const char* kExpected = "expected";

using Findings = std::vector<const Finding*>;

/// Cases of a scan. A finding is told in full in the first case that fails for it, and by its title in the
/// others: those of its other GPUs and files.
class Cases {
 public:
  void add(const Scan& scan, const ScannedObject& object, const Findings& findings, TestSuite& suite) {
    group_ = object.name();
    Findings unmet;
    Findings rest;
    for (const Finding* finding : findings) {
      if (finding->cause == core::Cause::unmet_expectation)
        unmet.push_back(finding);
      else if (targets_of(*finding).empty())
        rest.push_back(finding);
    }
    if (object.expected || !unmet.empty()) suite.cases.push_back(judged(unmet, kExpected));
    for (const image::Arch target : scan.targets) {
      Findings of_target;
      for (const Finding* finding : findings)
        if (std::ranges::any_of(finding->devices,
                                [&](const core::Device& device) { return device.cc == target.cc; }))
          of_target.push_back(finding);
      suite.cases.push_back(judged(of_target, sm_name(target)));
    }
    if ((scan.targets.empty() && !object.expected && unmet.empty()) || !rest.empty())
      suite.cases.push_back(judged(rest, kWhole));
  }

  bool told(const Finding& finding) const { return told_.contains(&finding); }

 private:
  // Several findings of one case: the worst, which comes first, decides; all are told.
  TestCase judged(const Findings& findings, const std::string& name) {
    TestCase out{.group = group_, .name = name};
    for (const Finding* finding : findings) {
      const bool again = !told_.insert(finding).second;
      TestCase one = test_case(*finding, group_);
      if (again) one.text = one.message;
      if (finding == findings.front()) {
        one.name = name;
        out = std::move(one);
      } else {
        out.text += '\n' + one.text;
      }
    }
    return out;
  }

  std::string group_;
  std::set<const Finding*> told_;
};

}  // namespace

Outcome outcome_of(const diagnose::TargetVerdict& verdict) {
  if (verdict.nothing_fits()) return Outcome::none;
  if (!verdict.serves()) return Outcome::part;
  if (verdict.jit != 0) return Outcome::jit;
  return verdict.sass != 0 ? Outcome::sass : Outcome::no_kernels;
}

std::vector<MatrixRow> matrix_rows(const Scan& scan, bool by_distribution) {
  std::vector<MatrixRow> out;
  std::map<std::string, std::size_t> packages;
  const std::size_t skip = common_folder(scan);
  for (const ScannedObject& object : scan.objects) {
    const bool summed = by_distribution && !object.package.empty();
    const auto known = summed ? packages.find(object.package.label()) : packages.end();
    const std::size_t at = known == packages.end() ? out.size() : known->second;
    if (at == out.size()) {
      out.push_back({.name = summed ? object.package.label() : object.name().substr(skip),
                     .package = object.package.label(),
                     .files = 0,
                     .images = {},
                     .targets = {}});
      if (summed) packages.emplace(object.package.label(), at);
    }
    MatrixRow& row = out[at];
    ++row.files;
    row.bytes += object.bytes;
    row.requested = row.requested || object.requested;
    row.modules += object.modules;
    add_images(object.images, row.images);
    for (std::size_t i = 0; i < object.targets.size(); ++i) {
      if (i == row.targets.size()) row.targets.push_back({{.target = object.targets[i].target}});
      add_verdict(object.targets[i], row.targets[i]);
    }
  }
  number_namesakes(out);
  for (MatrixRow& row : out) {
    if (row.files > 1) row.name += fmt::format(" ({} files)", row.files);
  }
  return out;
}

std::string render_sarif(const Scan& scan, Format, const RenderOptions&) {
  SarifRun run{.id = "kshim-scan/"};
  run.findings = placed(scan, run.root);
  (scan.undecided() ? run.failures : run.notes) = core::mapped(all_notes(scan), &ReadNote::text);
  return sarif_log(run);
}

std::string render_github(const Scan& scan, Format, const RenderOptions&) {
  const auto root = SourceRoot::of_process();
  return github_commands(placed(scan, root), root, {}, core::mapped(all_notes(scan), &ReadNote::text));
}

std::string rendered(const Scan& scan, Format format, const RenderOptions& options) {
  switch (format) {
#define KSHIM_FORMAT(id, writer) \
  case Format::id:               \
    return render_##writer(scan, format, options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
  }
  return {};
}

KSHIM_JSON(verbs::ScannedImage, path, name, platform, base, layers)
KSHIM_JSON(verbs::UnreadFile, path, member, kind, bytes)
KSHIM_JSON(verbs::BudgetUse, name, of, bytes, limit)
KSHIM_JSON(verbs::Expected, list, source, reason, skipped, missing, surplus)
KSHIM_JSON(verbs::ModuleSize, offset, images, stored, bytes, kernel)

template <>
inline Json to_json(const verbs::KernelNeeds& from) {
  Json out = {{"arch", from.arch}};
  for (const auto& [name, value] :
       {std::pair("registers", from.registers), std::pair("shared_bytes", from.shared_bytes),
        std::pair("local_bytes", from.local_bytes), std::pair("max_threads", from.max_threads)})
    out[name] = value != image::KernelInfo::kUnknown ? Json(value) : Json(nullptr);
  out["code_bytes"] = from.code_bytes;
  return out;
}

template <>
inline Json to_json(const verbs::ScannedKernel& from) {
  return {{"name", from.name},
          {"demangled", from.demangled},
          {"archs", from.archs()},
          {"images", json_of(from.images)}};
}

Json image_json(const ImageCount& from) {
  const image::Candidate& candidate = from.candidate;
  Json out = {{"kind", image::to_name(candidate.kind)},
              {"arch", name(candidate.kind, candidate.arch)},
              {"isa", json_of(candidate.isa)}};
  KSHIM_JSON_FIELDS(count, bytes)
  return out;
}

std::string render_json(const Scan& from, Format format, const RenderOptions&) {
  Json out = {{"schema", "kshim-scan/1"}};
  out["objects"] =
      json_list(from.objects, [&](const ScannedObject& object) { return object_json(object, from.sizes); });
  KSHIM_JSON_FIELDS(findings, targets, driver)
  out["totals"] = {{"files", from.files}, {"bytes", from.bytes}, {"duplicates", from.duplicates}};
  out["images"] = json_of(from.images);
  out["unread_files"] = json_of(from.unread);
  if (!from.budget.empty()) out["budget"] = json_of(from.budget);
  out["unread"] = from.undecided();
  out["notes"] = core::mapped(all_notes(from), &ReadNote::text);
  for (const std::string& note : from.newer) out["notes"].push_back(note);
  out["fleet"] = json_of(from.fleet);
  if (!from.companions.empty()) out["companions"] = from.companions;
  if (from.process) {
    out["process"] = json_of(*from.process);
    out["checks"] = json_of(from.checks);
  }
  add_knowledge(out);
  return dumped(out, format);
}

std::string render_junit(const Scan& scan, Format, const RenderOptions&) {
  std::unordered_map<std::string, Findings> findings;
  Cases cases;
  for (const Finding& finding : scan.findings) {
    findings[finding.object].push_back(&finding);
    for (const std::string& object : finding.other_objects) findings[object].push_back(&finding);
  }
  std::vector<TestSuite> suites;
  std::unordered_map<std::string, std::size_t> suite_of;
  for (const ScannedObject& object : scan.objects) {
    const auto [at, added] = suite_of.try_emplace(object.path, suites.size());
    if (added) suites.push_back({.name = object.path});
    const auto own = findings.find(object.name());
    cases.add(scan, object, own == findings.end() ? Findings() : own->second, suites[at->second]);
  }
  TestSuite others{.name = "kshim"};
  for (const Finding& finding : scan.findings)
    if (!cases.told(finding)) others.cases.push_back(test_case(finding, "kshim"));
  for (const ReadNote& note : all_notes(scan))
    others.cases.push_back({.group = "kshim",
                            .name = "readable: " + note.place,
                            .result = scan.undecided() ? TestResult::broken : TestResult::skipped,
                            .type = scan.undecided() ? "unread" : "",
                            .message = note.text()});
  if (!others.cases.empty()) suites.push_back(std::move(others));
  return junit_xml("kshim scan", suites);
}

}  // namespace kshim::render
