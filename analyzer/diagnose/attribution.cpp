// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/attribution.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <string_view>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

std::string label(const PackageRecord& package) {
  return package.version.empty() ? package.name : package.name + " " + package.version;
}

// "pytorch 2.5.1 (conda, build py3.11_cuda12.4, channel pytorch, environment ml)"
std::string long_text(const PackageRecord& package) {
  std::string details = package.manager;
  if (!package.build.empty()) details += ", build " + package.build;
  if (!package.channel.empty()) details += ", channel " + package.channel;
  if (package.manager == "conda" && !package.environment.empty())
    details += fmt::format(", environment {}", basename_of(package.environment));
  if (!package.source.empty()) details += ", built from " + package.source;
  return fmt::format("{} ({})", label(package), details);
}

std::string sentence(const PackageRecord& package, const std::string& path) {
  const std::string_view file = basename_of(path);
  if (const std::string copy = packages::vendored_library(path); !copy.empty())
    return fmt::format("{} is a copy of {} inside {}.", file, copy, long_text(package));
  // What the row with the package says already is not said twice.
  const bool more = !package.build.empty() || !package.source.empty() || package.manager == "dpkg" ||
                    package.manager == "rpm";
  return more ? fmt::format("{} belongs to {}.", file, long_text(package)) : std::string();
}

}  // namespace

PackageRecord record_of(const packages::Package& package, std::uint64_t object) {
  PackageRecord out;
  out.object = object;
  out.name = package.name;
  out.version = package.version;
  out.manager = package.manager;
  out.build = package.build;
  out.channel = package.channel;
  out.environment = package.environment;
  out.source = package.source;
  return out;
}

bool is_of_this_machine(const Report& report) {
  utsname system{};
  return uname(&system) == 0 && report.process.host == system.nodename;
}

std::optional<PackageRecord> package_of(const Scene& scene, const ObjectRecord& object) {
  // What was made up from a library's or a frame's record has no id of its own.
  const ObjectRecord* named = scene.index.object(object.id);
  if (named != nullptr && named->path == object.path) {
    if (const PackageRecord* row = scene.index.package(object.id)) return *row;
  }
  return package_here(scene, object);
}

std::optional<PackageRecord> package_here(const Scene& scene, const ObjectRecord& object) {
  if (scene.files.find(object) == nullptr && !is_of_this_machine(scene.report)) return std::nullopt;
  const auto package = scene.files.package(object);
  if (!package) return std::nullopt;
  return record_of(*package, object.id);
}

PackageName package_name(const PackageRecord& package) {
  return {package.name, package.version, package.manager};
}

std::vector<Evidence> owner_evidence(const Scene& scene, const ObjectRecord& object) {
  std::vector<Evidence> out;
  const ReportLine at = location(scene.report, object.line);
  if (const std::string& other = scene.files.elsewhere(object); !other.empty())
    out.push_back({EvidenceId::read_elsewhere,
                   fmt::format("{} {}: {}, which has the same build id, was read in its place.", object.path,
                               scene.files.why_not(object), other),
                   at,
                   {{"file", object.path}, {"read", other}}});
  const auto package = package_of(scene, object);
  if (!package) {
    const bool same = scene.files.find(object) != nullptr;
    const std::string why = same ? scene.files.packages().why_not(object.path) : std::string();
    if (!why.empty())
      out.push_back({EvidenceId::owner_unknown,
                     fmt::format("Which package {} belongs to is not known: {}.", object.path, why),
                     at,
                     {{"file", object.path}, {"why", why}}});
    return out;
  }
  if (std::string text = sentence(*package, object.path); !text.empty())
    out.push_back(
        {EvidenceId::owner,
         std::move(text),
         at,
         {{"package", package->name}, {"version", package->version}, {"installer", package->manager}}});
  if (const auto found = scene.files.package(object); found && !found->also.empty())
    out.push_back(
        {EvidenceId::shared_file,
         fmt::format("{} lists the same file: of two packages that share files, what was installed last "
                     "is there.",
                     enumerate(found->also)),
         at,
         {{"packages", enumerate(found->also)}}});
  return out;
}

}  // namespace kshim::analysis
