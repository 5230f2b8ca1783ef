// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"
#include "analyzer/core/foreign_json.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxJsonBytes = std::uintmax_t{1} << 30;

using SavedJson = nlohmann::json;

void add_image(const SavedJson& json, Object& object) {
  const auto arch = image::parse_arch(string_at(json, "arch"));
  if (!arch) return;
  const image::Candidate image{image::parse_kind(string_at(json, "kind")).value_or(image::ImageKind::cubin),
                               *arch, image::parse_version(string_at(json, "isa")).value_or({})};
  object.images.push_back({image, number_at(json, "count"), number_at(json, "bytes")});
}

std::string sentence_of(const SavedJson& finding) {
  const std::string object = string_at(finding, "object");
  const std::string headline = string_at(finding, "headline");
  const std::string need = string_at(finding, "need");
  std::string text = object.empty() ? headline : object.substr(object.rfind('/') + 1) + ": " + headline;
  if (!need.empty()) text += fmt::format(" ({})", need);
  return text;
}

SideFinding finding_of(const SavedJson& json) {
  SideFinding out{.cause = string_at(json, "cause"),
                  .object = string_at(json, "object"),
                  .need = string_at(json, "need"),
                  .text = sentence_of(json)};
  const std::string severity = string_at(json, "severity");
  out.severity = severity == "error"     ? Severity::error
                 : severity == "warning" ? Severity::warning
                                         : Severity::info;
  const SavedJson& code = part_of(json, "code");
  if (code.is_number_integer()) out.code = code.get<std::int64_t>();
  return out;
}

Object object_of(const SavedJson& json) {
  Object out;
  out.place = string_at(json, "path");
  out.member = string_at(json, "member");
  out.name = out.member.empty() ? out.place : out.place + "!" + out.member;
  out.package = string_at(part_of(json, "package_info"), "name");
  out.build_id = string_at(json, "build_id");
  out.bytes = number_at(json, "bytes");
  for (const SavedJson& image : list_at(json, "images")) add_image(image, out);
  if (part_of(json, "kernels").is_array()) {
    out.kernels.emplace();
    for (const SavedJson& kernel : list_at(json, "kernels")) {
      std::vector<std::string>& archs = (*out.kernels)[string_at(kernel, "demangled")];
      for (const SavedJson& image : list_at(kernel, "images"))
        out.code_bytes[string_at(kernel, "demangled")] += number_at(image, "code_bytes");
      for (const SavedJson& arch : list_at(kernel, "archs"))
        if (arch.is_string()) archs.push_back(arch.get<std::string>());
    }
  }
  for (const SavedJson& target : list_at(json, "targets")) {
    const auto arch = image::parse_arch(string_at(target, "target"));
    if (!arch) continue;
    TargetVerdict verdict{.target = *arch};
    verdict.sass = number_at(target, "sass");
    verdict.jit = number_at(target, "jit");
    verdict.lacking = number_at(target, "lacking");
    Outcome outcome = outcome_of(verdict);
    const std::string written = string_at(target, "verdict");  // what the counts do not say: a library picks
    for (const Outcome each : {Outcome::sass, Outcome::jit, Outcome::part, Outcome::none})
      if (written == to_name(each)) outcome = each;
    out.targets[*arch] = outcome;
  }
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

void add_reports(const fs::path& path, const DiffRequest& options, Side& side) {
  AnalysisOptions wanted;
  wanted.targets = options.targets;
  if (options.driver.known()) wanted.assume_driver = options.driver;
  wanted.progress = options.progress;
  const Analysis analysis = analyze({path}, wanted);
  read_json(render::rendered(analysis, Format::json, {}), side);
  side.nothing_there = analysis.nothing_readable;
}

void add_files(const fs::path& path, const DiffRequest& options, Side& side) {
  ScanRequest wanted;
  wanted.targets = options.targets;
  wanted.driver = options.driver;
  wanted.kernels = options.kernels || options.sizes;
  wanted.jobs = options.jobs;
  wanted.progress = options.progress;
  const Scan scan = verbs::scan({path}, wanted);
  read_json(render::rendered(scan, Format::json, {}), side);
  side.nothing_there = scan.nothing_readable;
}

}  // namespace

Side read_side(const std::string& path, const DiffRequest& options) {
  Side side;
  side.path = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    side.nothing_there = true;
    side.notes = {fmt::format("{}: is not there", path)};
    return side;
  }
  if (fs::is_directory(status)) {
    holds_reports(path) ? add_reports(path, options, side) : add_files(path, options, side);
    return side;
  }
  if (fs::is_regular_file(status) && is_report(path)) {
    add_reports(path, options, side);
  } else if (fs::is_regular_file(status) && !json_start(path).empty()) {
    const std::string text = files::read_whole(path, kMaxJsonBytes).value_or("");
    side.nothing_there = !read_json(text, side);
  } else {
    add_files(path, options, side);
  }
  return side;
}

bool read_json(const std::string& text, Side& side) {
  const SavedJson json = SavedJson::parse(text, nullptr, false);
  if (json.is_discarded()) {
    side.notes = {fmt::format("{}: is no JSON that can be read whole", side.path)};
    return false;
  }
  const std::string schema = string_at(json, "schema");
  if (schema == "kshim-analysis/1") {
    side.kind = SideKind::reports;
    side.verdict = string_at(json, "verdict");
    for (const SavedJson& device : list_at(json, "devices")) {
      const std::string cc = string_at(device, "compute_capability");
      side.devices.push_back(fmt::format("{} ({})", string_at(device, "name"), cc.empty() ? "?" : cc));
    }
  } else if (schema == "kshim-scan/1") {
    side.objects = mapped(list_at(json, "objects"), object_of);
    cut_common_folder(side.path, side.objects);
  } else {
    side.notes = {fmt::format("{}: its schema is `{}`; kshim-scan/1 and kshim-analysis/1 can be compared",
                              side.path, schema)};
    return false;
  }
  side.findings = mapped(list_at(json, "findings"), finding_of);
  for (const SavedJson& note : list_at(json, "notes"))
    if (note.is_string()) side.notes.push_back(note.get<std::string>());
  return true;
}

}  // namespace kshim::compare
