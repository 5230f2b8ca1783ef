// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/system_paths.h"

#include <algorithm>
#include <string_view>
#include <system_error>

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

// The folders that a merged /usr has links to (freedesktop.org, "The Case for the /usr Merge").
constexpr std::string_view kMerged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

bool is_merged(const fs::path& root, std::string_view folder) {
  std::error_code error;
  const fs::path target = fs::read_symlink(root / folder, error);
  if (error) return false;
  const std::string text = target.lexically_normal().string();
  return text == "usr/" + std::string(folder) || text == "/usr/" + std::string(folder);
}

void add(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

void add_merged(const fs::path& root, const std::string& path, std::vector<std::string>& names) {
  for (const std::string_view folder : kMerged) {
    const std::string outside = "/" + std::string(folder) + "/";
    const std::string inside = "/usr" + outside;
    if (path.starts_with(inside) && is_merged(root, folder)) add(names, path.substr(4));
    if (path.starts_with(outside) && is_merged(root, folder)) add(names, "/usr" + path);
  }
}

}  // namespace

std::vector<std::string> names_of(const fs::path& root, const std::string& path) {
  std::vector<std::string> out{path};
  add_merged(root, path, out);
  std::error_code error;
  const fs::path base = fs::canonical(root, error);
  if (error) return out;
  const fs::path real = fs::canonical(base / path.substr(1), error);
  if (error) return out;
  const std::string prefix = base == "/" ? std::string() : base.string();
  const std::string text = real.string();
  if (!text.starts_with(prefix + "/")) return out;  // a link that leads out of the root
  add(out, text.substr(prefix.size()));
  add_merged(root, text.substr(prefix.size()), out);
  return out;
}

bool may_be_system(const std::string& path) {
  // The folders of the Filesystem Hierarchy Standard that packages of a distribution put libraries into.
  constexpr std::string_view kFolders[] = {"/usr/", "/opt/", "/lib", "/bin/", "/sbin/", "/etc/", "/var/"};
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace kshim::packages
