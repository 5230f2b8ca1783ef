// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/side.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "analyzer/core/text.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/verbs/report_files.h"
#include "analyzer/verbs/scan.h"
#include "kshim/files/open_file.h"

namespace kshim::diff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstBytes = 4096;
constexpr std::size_t kTried = 20;  // files of a folder that are asked whether they are reports
constexpr std::uintmax_t kLargestJson = std::uintmax_t{1} << 30;

std::string first_bytes(const fs::path& path) { return files::read_up_to(path, kFirstBytes).value_or(""); }

bool is_object(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return begin != std::string_view::npos && text[begin] == '{';
}

bool is_report(std::string_view first) {
  return is_object(first) &&
         first.substr(0, first.find('\n')).find("kshim-report/") != std::string_view::npos;
}

bool holds_reports(const fs::path& folder) {
  std::vector<std::string> ignored;
  const auto files = analysis::find_report_files({folder}, ignored);
  const auto last = files.begin() + static_cast<std::ptrdiff_t>(std::min(files.size(), kTried));
  return std::any_of(files.begin(), last,
                     [](const analysis::ReportFile& file) { return is_report(first_bytes(file.path)); });
}

void add_images(const std::vector<analysis::ImageEntry>& entries, Object& object) {
  for (const analysis::ImageEntry& entry : entries) {
    const auto arch = image::parse_arch(entry.arch);
    if (!arch) continue;
    analysis::ImageCount row;
    row.candidate.kind = image::parse_kind(entry.kind).value_or(image::ImageKind::cubin);
    row.candidate.arch = *arch;
    if (const auto isa = image::parse_version(entry.isa)) row.candidate.isa = *isa;
    row.count = entry.count;
    row.bytes = entry.bytes;
    object.images.push_back(row);
  }
}

// The objects that reports name, each once.
void add_objects(const fs::path& path, Side& side) {
  std::vector<std::string> ignored;
  std::map<std::string, std::size_t> known;
  for (const analysis::ReportFile& file : analysis::find_report_files({path}, ignored)) {
    const auto got = analysis::read_report(file.path);
    const auto* report = std::get_if<analysis::Report>(&got);
    if (report == nullptr) continue;
    for (const analysis::ObjectRecord& record : report->objects) {
      if (record.path.empty() || (record.images && record.images->empty())) continue;
      if (!known.try_emplace(record.path, side.objects.size()).second) continue;
      Object object{.name = record.path, .place = record.path, .build_id = record.build_id};
      object.images_known = record.images.has_value();
      if (record.images) add_images(*record.images, object);
      side.objects.push_back(std::move(object));
    }
  }
}

void read_reports(const fs::path& path, const Options& options, Side& side) {
  analysis::Options wanted;
  wanted.targets = options.targets;
  if (options.driver.known()) wanted.assume_driver = options.driver;
  wanted.progress = options.progress;
  const analysis::Analysis analysis = analysis::analyze({path}, wanted);
  side.kind = SideKind::reports;
  side.nothing_there = analysis.nothing_readable;
  side.verdict = analysis::to_name(analysis.verdict);
  side.notes = analysis.notes;
  for (const analysis::Finding& finding : analysis.findings) side.findings.push_back(to_diff(finding));
  for (const analysis::DeviceSummary& device : analysis.devices) {
    side.devices.push_back(
        fmt::format("{} ({})", device.name, device.cc ? image::to_name(*device.cc).view() : "?"));
  }
  add_objects(path, side);
}

/// Below the folder that was named; of a named file its own name.
std::string place_in(const std::string& path, const std::string& root, bool folder) {
  if (!folder) return std::string(analysis::basename_of(path));
  if (!path.starts_with(root)) return path;
  const std::size_t begin = path.find_first_not_of('/', root.size());
  return begin == std::string::npos ? path : path.substr(begin);
}

void read_files(const fs::path& path, const Options& options, Side& side) {
  scan::Options wanted;
  wanted.targets = options.targets;
  wanted.driver = options.driver;
  wanted.kernels = options.kernels || options.sizes;
  wanted.jobs = options.jobs;
  wanted.progress = options.progress;
  scan::Scan scan = scan::scan({path}, wanted);
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  side.nothing_there = scan.nothing_readable;
  side.notes = std::move(scan.notes);
  for (const analysis::Finding& finding : scan.findings) side.findings.push_back(to_diff(finding));
  for (scan::ScannedObject& from : scan.objects) {
    Object object{.name = from.name(),
                  .place = place_in(from.path, side.path, folder),
                  .member = from.member,
                  .package = from.package.name,
                  .build_id = from.build_id,
                  .bytes = from.bytes,
                  .images = std::move(from.images)};
    for (const scan::TargetVerdict& verdict : from.targets)
      object.targets[verdict.target] = scan::outcome_of(verdict);
    if (from.kernels) {
      object.kernels.emplace();
      for (const scan::ScannedKernel& kernel : *from.kernels)
        (*object.kernels)[kernel.demangled] = kernel.archs();
      for (const scan::ScannedKernel& kernel : *from.kernels)
        for (const scan::KernelNeeds& image : kernel.images)
          object.code_bytes[kernel.demangled] += image.code_bytes;
    }
    side.objects.push_back(std::move(object));
  }
}

}  // namespace

std::string package_name(std::string_view package) {
  return std::string(package.substr(0, package.find(' ')));
}

Finding to_diff(const analysis::Finding& finding) {
  return {.cause = std::string(analysis::row_of(finding.cause).name),
          .severity = finding.severity,
          .object = finding.object,
          .need = finding.need,
          .code = finding.code,
          .text = analysis::title_of(finding)};
}

Side read_side(const std::string& path, const Options& options) {
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
  const std::string first = fs::is_regular_file(status) ? first_bytes(path) : std::string();
  if (is_report(first)) {
    read_reports(path, options, side);
  } else if (is_object(first)) {
    const std::string text = files::read_whole(path, kLargestJson).value_or("");
    side.nothing_there = !read_json(text, side);
  } else {
    read_files(path, options, side);
  }
  return side;
}

}  // namespace kshim::diff
