// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"
#include "analyzer/core/foreign_json.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxJsonBytes = std::uintmax_t{1} << 30;

/// An image as a report or a scan in JSON names it.
void add_image(const ImageEntry& entry, Object& object) {
  const auto arch = image::parse_arch(entry.arch);
  if (!arch) return;
  const image::Candidate image{image::parse_kind(entry.kind).value_or(image::ImageKind::cubin), *arch,
                               image::parse_version(entry.isa).value_or({})};
  object.images.push_back({image, entry.count, entry.bytes});
}

// The objects that reports name, each once.
void add_objects(const fs::path& path, Side& side) {
  std::vector<std::string> ignored;
  std::map<std::string, std::size_t> known;
  for (const ReportFile& file : find_report_files({path}, ignored)) {
    const auto got = read_report(file.path);
    const auto* report = std::get_if<Report>(&got);
    if (report == nullptr) continue;
    for (const ObjectRecord& record : report->objects) {
      if (record.path.empty() || (record.images && record.images->empty())) continue;
      if (!known.try_emplace(record.path, side.objects.size()).second) continue;
      Object object{.name = record.path, .place = record.path, .build_id = record.build_id};
      object.images_known = record.images.has_value();
      if (record.images)
        for (const ImageEntry& entry : *record.images) add_image(entry, object);
      side.objects.push_back(std::move(object));
    }
  }
}

void read_reports(const fs::path& path, const DiffRequest& options, Side& side) {
  AnalysisOptions wanted;
  wanted.targets = options.targets;
  if (options.driver.known()) wanted.assume_driver = options.driver;
  wanted.progress = options.progress;
  const Analysis analysis = analyze({path}, wanted);
  side.kind = SideKind::reports;
  side.nothing_there = analysis.nothing_readable;
  side.verdict = to_name(analysis.verdict);
  side.notes = analysis.notes;
  side.findings = mapped(analysis.findings, to_diff);
  for (const DeviceSummary& device : analysis.devices)
    side.devices.push_back(fmt::format("{} ({})", device.name, device.cc ? name(*device.cc) : "?"));
  add_objects(path, side);
}

/// Below the folder that was named; of a named file its own name.
std::string place_in(const std::string& path, const std::string& root, bool folder) {
  if (!folder) return std::string(basename_of(path));
  if (!path.starts_with(root)) return path;
  const std::size_t begin = path.find_first_not_of('/', root.size());
  return begin == std::string::npos ? path : path.substr(begin);
}

void read_files(const fs::path& path, const DiffRequest& options, Side& side) {
  ScanRequest wanted;
  wanted.targets = options.targets;
  wanted.driver = options.driver;
  wanted.kernels = options.kernels || options.sizes;
  wanted.jobs = options.jobs;
  wanted.progress = options.progress;
  Scan scan = verbs::scan({path}, wanted);
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  side.nothing_there = scan.nothing_readable;
  side.notes = mapped(scan.notes, &ReadNote::text);
  side.findings = mapped(scan.findings, to_diff);
  for (ScannedObject& from : scan.objects) {
    Object object{.name = from.name(),
                  .place = place_in(from.path, side.path, folder),
                  .member = from.member,
                  .package = from.package.name,
                  .build_id = from.build_id,
                  .bytes = from.bytes,
                  .images = std::move(from.images)};
    for (const TargetVerdict& verdict : from.targets) object.targets[verdict.target] = outcome_of(verdict);
    if (from.kernels) {
      object.kernels.emplace();
      for (const ScannedKernel& kernel : *from.kernels) {
        (*object.kernels)[kernel.demangled] = kernel.archs();
        for (const KernelNeeds& image : kernel.images)
          object.code_bytes[kernel.demangled] += image.code_bytes;
      }
    }
    side.objects.push_back(std::move(object));
  }
}

using SavedJson = nlohmann::json;

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
  out.package = package_name(string_at(json, "package"));
  out.build_id = string_at(json, "build_id");
  out.bytes = number_at(json, "bytes");
  for (const SavedJson& image : list_at(json, "images"))
    add_image({string_at(image, "kind"), string_at(image, "arch"), string_at(image, "isa"),
               number_at(image, "count"), number_at(image, "bytes")},
              out);
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

// What all paths have in common, up to a slash, is the folder that was scanned.
void cut_common_folder(std::vector<Object>& objects) {
  if (objects.empty()) return;
  std::string common = objects.front().place.substr(0, objects.front().place.rfind('/') + 1);
  for (const Object& object : objects) {
    while (!object.place.starts_with(common)) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);
    }
  }
  for (Object& object : objects) object.place.erase(0, common.size());
}

}  // namespace

std::string package_name(std::string_view package) {
  return std::string(package.substr(0, package.find(' ')));
}

SideFinding to_diff(const Finding& finding) {
  return {.cause = std::string(row_of(finding.cause).name),
          .severity = finding.severity,
          .object = finding.object,
          .need = finding.need,
          .code = finding.code,
          .text = title_of(finding)};
}

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
    holds_reports(path) ? read_reports(path, options, side) : read_files(path, options, side);
    return side;
  }
  if (fs::is_regular_file(status) && is_report(path)) {
    read_reports(path, options, side);
  } else if (fs::is_regular_file(status) && !json_start(path).empty()) {
    const std::string text = files::read_whole(path, kMaxJsonBytes).value_or("");
    side.nothing_there = !read_json(text, side);
  } else {
    read_files(path, options, side);
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
    side.has_objects = false;
    side.verdict = string_at(json, "verdict");
    for (const SavedJson& device : list_at(json, "devices")) {
      const std::string cc = string_at(device, "compute_capability");
      side.devices.push_back(fmt::format("{} ({})", string_at(device, "name"), cc.empty() ? "?" : cc));
    }
  } else if (schema == "kshim-scan/1") {
    side.objects = mapped(list_at(json, "objects"), object_of);
    cut_common_folder(side.objects);
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
