// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/databases.h"
#include "analyzer/owner/json_text.h"

namespace kshim::owner {
namespace {

namespace fs = std::filesystem;

// The largest real one, of a CUDA toolkit's documentation in one package, has 12 MB.
constexpr std::uint64_t kMaxCondaRecordBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxCondaPackages = 10'000;
constexpr int kMaxPrefixParents = 64;

// As `conda -c` takes it: "https://conda.anaconda.org/conda-forge/linux-64" is conda-forge, and the channels
// of Anaconda itself are "defaults". An address may hold a password or a token
// (https://host/t/TOKEN/channel): neither is kept.
std::string channel_of(std::string channel) {
  const std::size_t scheme = channel.find("://");
  const std::size_t least = scheme == std::string::npos ? 0 : scheme + 3;
  while (channel.size() > least && channel.ends_with('/')) channel.pop_back();
  for (const std::string_view platform : {"/linux-64", "/linux-aarch64", "/noarch"})
    if (channel.ends_with(platform)) channel.erase(channel.size() - platform.size());
  std::string host;
  std::string path = channel;
  if (scheme != std::string::npos) {
    const std::size_t begin = scheme + 3;
    const std::size_t slash = std::min(channel.find('/', begin), channel.size());
    host = channel.substr(begin, slash - begin);
    host.erase(0, host.rfind('@') + 1);
    path = channel.substr(std::min(slash + 1, channel.size()));
    if (path.starts_with("t/")) path.erase(0, std::min(path.find('/', 2), path.size() - 1) + 1);
  }
  if ((host.empty() || host == "repo.anaconda.com") && path.starts_with("pkgs/")) return "defaults";
  if (host.empty() || host == "conda.anaconda.org" || path.empty()) return path;
  return channel.substr(0, scheme + 3) + host + "/" + path;
}

}  // namespace

const std::string& CondaEnvironments::prefix(const std::string& path) {
  static const std::string none;
  const fs::path start = fs::path(path).parent_path();
  const auto known = prefixes_.find(start.string());
  if (known != prefixes_.end()) return known->second;
  std::string found;
  fs::path folder = start;
  for (int level = 0; level < kMaxPrefixParents && folder.has_relative_path();
       ++level, folder = folder.parent_path()) {
    std::error_code error;
    if (budget_.entries == 0) return none;
    --budget_.entries;
    if (!fs::is_directory(folder / "conda-meta", error)) continue;
    found = folder.string();
    break;
  }
  return prefixes_.emplace(start.string(), std::move(found)).first->second;
}

std::optional<Package> CondaEnvironments::owner(const std::string& path) {
  const std::string& folder = prefix(path);
  if (folder.empty()) return std::nullopt;
  const Environment& here = environment(folder);
  const auto owners = here.files.owners(path);
  if (owners.empty()) return std::nullopt;
  Package out = here.packages[owners.front()];
  for (std::size_t i = 1; i < owners.size(); ++i) out.also.push_back(here.packages[owners[i]].label());
  return out;
}

const CondaEnvironments::Environment& CondaEnvironments::environment(const std::string& prefix) {
  const auto [at, added] = environments_.try_emplace(prefix);
  if (!added) return at->second;
  Environment& out = at->second;
  const fs::path folder = fs::path(prefix) / "conda-meta";
  simdjson::dom::parser parser;
  for (const std::string& name : names_in(folder, budget_, ".json")) {
    if (out.packages.size() >= kMaxCondaPackages) break;
    const auto text = read_bounded(folder / name, kMaxCondaRecordBytes, budget_);
    simdjson::dom::element record;
    if (!text || parser.parse(*text).get(record) != simdjson::SUCCESS) continue;
    Package package;
    package.name = text_in(record, "name");
    if (package.name.empty()) continue;
    package.version = text_in(record, "version");
    package.build = text_in(record, "build");
    package.channel = channel_of(text_in(record, "channel"));
    package.manager = "conda";
    package.requested = !text_in(record, "requested_spec").empty();
    package.environment = prefix;
    const auto owner = static_cast<PathIndex::Owner>(out.packages.size());
    simdjson::dom::array files;
    if (record["files"].get(files) == simdjson::SUCCESS) {
      for (const simdjson::dom::element each : files) {
        std::string_view file;
        if (each.get(file) == simdjson::SUCCESS) out.files.add(prefix + "/" + std::string(file), owner);
      }
    }
    out.packages.push_back(std::move(package));
  }
  return out;
}

}  // namespace kshim::owner
