// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/dpkg_database.h"

#include <algorithm>

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestList = std::uint64_t{64} << 20;
constexpr std::uint64_t kLargestStatus = std::uint64_t{256} << 20;
constexpr std::uint64_t kLargestDiversions = std::uint64_t{4} << 20;
constexpr std::size_t kMostPackages = 100'000;
constexpr std::string_view kList = ".list";

// Debian Policy 5.6.1 and 5.6.8: the characters of names and architectures.
bool is_list_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == ':';
  });
}

std::string name_of(std::string_view list_name) {
  return std::string(list_name.substr(0, list_name.find(':')));
}

// The value of "Field: value"; nullopt for another field.
std::optional<std::string_view> value_of(std::string_view line, std::string_view field) {
  if (!line.starts_with(field) || line.size() <= field.size() || line[field.size()] != ':')
    return std::nullopt;
  line.remove_prefix(field.size() + 1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

}  // namespace

std::optional<Package> DpkgDatabase::owner(const std::vector<std::string>& names) {
  load();
  for (const std::string& path : names) {
    const auto owners = listing(path);
    if (owners.empty()) continue;
    Package out;
    out.name = name_of(lists_[owners.front()]);
    out.version = version_of(lists_[owners.front()]);
    out.manager = "dpkg";
    return out;
  }
  return std::nullopt;
}

// What lies at a path whose name is diverted is the diverting package's; what the others call so lies
// elsewhere.
std::vector<PathIndex::Owner> DpkgDatabase::listing(const std::string& path) const {
  for (const Diversion& each : diversions_) {
    if (each.from != path && each.to != path) continue;
    const bool moved = each.to == path;
    auto owners = files_.owners(each.from);
    std::erase_if(owners, [&](PathIndex::Owner owner) {
      const bool diverting = !each.package.empty() && name_of(lists_[owner]) == each.package;
      return diverting == moved;
    });
    return owners;
  }
  return files_.owners(path);
}

std::string DpkgDatabase::version_of(const std::string& list_name) const {
  auto found = versions_.find(list_name);
  if (found == versions_.end()) found = versions_.find(name_of(list_name));
  return found == versions_.end() ? std::string() : found->second;
}

void DpkgDatabase::load() {
  if (loaded_) return;
  loaded_ = true;
  load_lists();
  if (lists_.empty()) return;
  load_status();
  load_diversions();
}

void DpkgDatabase::load_lists() {
  const fs::path folder = root_ / "var/lib/dpkg/info";
  for (const std::string& name : names_in(folder, budget_)) {
    if (!name.ends_with(kList) || lists_.size() >= kMostPackages) continue;
    const std::string package = name.substr(0, name.size() - kList.size());
    if (!is_list_name(package)) continue;
    const auto text = read_bounded(folder / name, kLargestList, budget_);
    if (!text) continue;
    const auto owner = static_cast<PathIndex::Owner>(lists_.size());
    lists_.push_back(package);
    each_line(*text, [&](std::string_view line) {
      if (line.starts_with('/')) files_.add(line, owner);
      return true;
    });
  }
  files_.seal();
}

void DpkgDatabase::load_status() {
  const auto text = read_bounded(root_ / "var/lib/dpkg/status", kLargestStatus, budget_);
  if (!text) return;
  std::string package;
  std::string architecture;
  std::string version;
  const auto keep = [&] {
    if (!package.empty() && !version.empty()) {
      versions_.emplace(package + ":" + architecture, version);
      versions_.emplace(package, version);
    }
    package.clear();
    architecture.clear();
    version.clear();
  };
  each_line(*text, [&](std::string_view line) {
    if (line.empty()) keep();
    if (const auto value = value_of(line, "Package")) package = *value;
    if (const auto value = value_of(line, "Architecture")) architecture = *value;
    if (const auto value = value_of(line, "Version")) version = *value;
    return versions_.size() < 2 * kMostPackages;
  });
  keep();
}

// Three lines each: what the file was called, what it is called now, and for whom; ":" is the administrator.
void DpkgDatabase::load_diversions() {
  const auto text = read_bounded(root_ / "var/lib/dpkg/diversions", kLargestDiversions, budget_);
  if (!text) return;
  std::vector<std::string> lines;
  each_line(*text, [&](std::string_view line) {
    lines.emplace_back(line);
    return lines.size() < 3 * kMostPackages;
  });
  for (std::size_t i = 0; i + 2 < lines.size(); i += 3)
    diversions_.push_back({lines[i], lines[i + 1], lines[i + 2] == ":" ? "" : name_of(lines[i + 2])});
}

}  // namespace kshim::packages
