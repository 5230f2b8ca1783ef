// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/databases.h"

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestList = std::uint64_t{64} << 20;
constexpr std::uint64_t kLargestStatus = std::uint64_t{256} << 20;
constexpr std::size_t kMostPackages = 100'000;
constexpr std::size_t kMostText = std::size_t{64} << 20;  // of a machine: 11 to 30 MB
constexpr unsigned kWorthIndex = 4;  // one file has so many names; an index takes as long as twenty searches
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
    const auto list = list_of(path);
    if (!list) continue;
    Package out;
    out.name = name_of(lists_[*list]);
    out.version = version_of(lists_[*list]);
    out.manager = "dpkg";
    return out;
  }
  return std::nullopt;
}

std::optional<std::size_t> DpkgDatabase::list_of(const std::string& path) {
  if (path.find('\n') != std::string::npos) return std::nullopt;
  if (asked_++ < kWorthIndex) {
    const std::string line = '\n' + path + '\n';
    const void* const found = ::memmem(text_.data(), text_.size(), line.data(), line.size());
    if (found == nullptr) return std::nullopt;
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - text_.data());
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_, at) - begins_.begin()) - 1;
  }
  index();
  const auto owners = files_.owners(path);
  return owners.empty() ? std::nullopt : std::optional<std::size_t>(owners.front());
}

void DpkgDatabase::index() {
  const std::size_t first = lists_.size() - begins_.size();
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    const std::size_t end = i + 1 < begins_.size() ? begins_[i + 1] : text_.size();
    each_line(std::string_view(text_).substr(begins_[i], end - begins_[i]), [&](std::string_view line) {
      if (line.starts_with('/')) files_.add(line, static_cast<PathIndex::Owner>(first + i));
      return true;
    });
  }
  begins_.clear();
  text_ = {};
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
    if (lists_.size() >= kMostPackages) break;
    const std::string package = name.substr(0, name.size() - kList.size());
    if (!is_list_name(package)) continue;
    const auto text = read_bounded(folder / name, kLargestList, budget_);
    if (!text) continue;
    lists_.push_back(package);
    begins_.push_back(text_.size());
    text_.append(1, '\n').append(*text).append(1, '\n');
    if (text_.size() < kMostText) continue;
    asked_ = kWorthIndex;
    index();
  }
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

}  // namespace kshim::packages
