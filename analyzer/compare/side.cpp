// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"
#include "analyzer/core/foreign_json.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::compare {
using core::list_at;
using core::Severity;
using core::string_at;
using render::Outcome;

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxJsonBytes = std::uintmax_t{1} << 30;

using SavedJson = nlohmann::json;

void add_image(const SavedJson& json, Object& object) {
  const auto arch = image::parse_arch(string_at(json, "arch"));
  if (!arch) return;
  const image::Candidate image{image::parse_kind(string_at(json, "kind")).value_or(image::ImageKind::cubin),
                               *arch, image::parse_version(string_at(json, "isa")).value_or({})};
  object.images.push_back({image, core::number_at(json, "count"), core::number_at(json, "bytes")});
}

SideFinding finding_of(const SavedJson& json) {
  SideFinding out{.cause = string_at(json, "cause"),
                  .object = string_at(json, "object"),
                  .need = string_at(json, "need")};
  if (!out.object.empty()) out.text = fmt::format("{}: ", core::basename_of(out.object));
  out.text += string_at(json, "headline");
  if (!out.need.empty()) out.text += fmt::format(" ({})", out.need);
  out.severity = Severity::info;
  for (const Severity severity : {Severity::error, Severity::warning})
    if (string_at(json, "severity") == to_name(severity)) out.severity = severity;
  const SavedJson& code = core::part_of(json, "code");
  if (code.is_number_integer()) out.code = code.get<std::int64_t>();
  return out;
}

Object object_of(const SavedJson& json) {
  Object out{.place = string_at(json, "path"), .member = string_at(json, "member")};
  out.name = out.member.empty() ? out.place : out.place + "!" + out.member;
  for (const SavedJson& image : list_at(json, "images")) add_image(image, out);
  if (core::part_of(json, "kernels").is_array()) out.kernels.emplace();
  for (const SavedJson& kernel : list_at(json, "kernels")) {
    std::set<std::string>& archs = (*out.kernels)[string_at(kernel, "demangled")];
    for (const SavedJson& arch : list_at(kernel, "archs"))
      if (arch.is_string()) archs.insert(arch.get<std::string>());
  }
  for (const SavedJson& target : list_at(json, "targets"))
    if (const auto arch = image::parse_arch(string_at(target, "target")))
      for (const Outcome outcome :
           {Outcome::no_kernels, Outcome::sass, Outcome::jit, Outcome::part, Outcome::none})
        if (string_at(target, "verdict") == to_name(outcome)) out.targets[*arch] = outcome;
  return out;
}

// The folder that was scanned: what all paths have in common, up to a slash, where the scan was kept as JSON.
void cut_common_folder(const std::string& path, std::vector<Object>& objects) {
  if (objects.empty()) return;
  const std::string root = path.ends_with('/') ? path : path + '/';
  const std::string& first = objects.front().place;
  std::string common = first.starts_with(root) ? root : first.substr(0, first.rfind('/') + 1);
  for (const Object& object : objects) {
    while (!object.place.starts_with(common)) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);
    }
  }
  for (Object& object : objects) object.place.erase(0, common.size());
}

/// The JSON that `kshim analyze` or `kshim scan` would write of it.
void read_with(bool reports, const fs::path& path, const DiffRequest& options, Side& side) {
  if (reports) {
    diagnose::AnalysisOptions wanted;
    wanted.targets = options.targets;
    if (options.driver.known()) wanted.assume_driver = options.driver;
    wanted.progress = options.progress;
    const verbs::Analysis analysis = verbs::analyze({path}, wanted);
    read_json(render::rendered(analysis, render::Format::json, {}), side);
    side.nothing_there = analysis.nothing_readable;
  } else {
    verbs::ScanRequest wanted;
    wanted.targets = options.targets;
    wanted.driver = options.driver;
    wanted.kernels = options.kernels;
    wanted.jobs = options.jobs;
    wanted.progress = options.progress;
    const verbs::Scan scan = verbs::scan({path}, wanted);
    read_json(render::rendered(scan, render::Format::json, {}), side);
    side.nothing_there = scan.nothing_readable;
  }
}

}  // namespace

Side read_side(const std::string& path, const DiffRequest& options) {
  Side side{.path = path};
  std::error_code error;
  const bool reports = verbs::holds_reports(path);
  if (!reports && fs::is_regular_file(path, error) && !verbs::json_start(path).empty())
    side.nothing_there = !read_json(files::read_whole(path, kMaxJsonBytes).value_or(""), side);
  else
    read_with(reports, path, options, side);
  return side;
}

bool read_json(const std::string& text, Side& side) {
  const SavedJson json = SavedJson::parse(text, nullptr, false);
  const std::string schema = string_at(json, "schema");
  side.reports = schema == "kshim-analysis/1";
  if (!side.reports && schema != "kshim-scan/1") {
    side.notes = {fmt::format("{}: its schema is `{}`; kshim-scan/1 and kshim-analysis/1 can be compared",
                              side.path, schema)};
    return false;
  }
  side.verdict = string_at(json, "verdict");
  for (const SavedJson& device : list_at(json, "devices")) {
    const std::string cc = string_at(device, "compute_capability");
    side.devices.push_back(fmt::format("{} ({})", string_at(device, "name"), cc.empty() ? "?" : cc));
  }
  side.objects = core::mapped(list_at(json, "objects"), object_of);
  cut_common_folder(side.path, side.objects);
  side.findings = core::mapped(list_at(json, "findings"), finding_of);
  for (const SavedJson& note : list_at(json, "notes"))
    if (note.is_string()) side.notes.push_back(note.get<std::string>());
  return true;
}

}  // namespace kshim::compare
