// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/databases.h"

namespace kshim::owner {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxListBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxStatusBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxPackages = 100'000;
constexpr std::string_view kList = ".list";

// Debian Policy 5.6.1 and 5.6.8: the characters of names and architectures.
bool is_list_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
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
    const auto owners = files_.owners(path);
    if (owners.empty()) continue;
    Package out;
    out.name = name_of(lists_[owners.front()]);
    out.version = version_of(lists_[owners.front()]);
    out.manager = "dpkg";
    return out;
  }
  return std::nullopt;
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
  if (!lists_.empty()) load_status();
}

void DpkgDatabase::load_lists() {
  const fs::path folder = root_ / "var/lib/dpkg/info";
  for (const std::string& name : names_in(folder, budget_, kList)) {
    if (lists_.size() >= kMaxPackages) break;
    const std::string package = name.substr(0, name.size() - kList.size());
    if (!is_list_name(package)) continue;
    const auto text = read_bounded(folder / name, kMaxListBytes, budget_);
    if (!text) continue;
    const auto owner = static_cast<PathIndex::Owner>(lists_.size());
    lists_.push_back(package);
    each_line(*text, [&](std::string_view line) {
      if (line.starts_with('/')) files_.add(line, owner);
      return true;
    });
  }
}

void DpkgDatabase::load_status() {
  const auto text = read_bounded(root_ / "var/lib/dpkg/status", kMaxStatusBytes, budget_);
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
    return versions_.size() < 2 * kMaxPackages;
  });
  keep();
}

}  // namespace kshim::owner
