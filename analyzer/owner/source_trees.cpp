// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/source_trees.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "analyzer/core/text.h"
#include "analyzer/owner/direct_url.h"

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;
using analysis::basename_of;

constexpr std::string_view kEggInfo = ".egg-info";
constexpr std::uint64_t kLargestText = std::uint64_t{1} << 20;
constexpr std::size_t kMostTrees = 64;
constexpr int kMostParents = 12;
// Where a project is built from: the egg-info of a project with the layout src/NAME lies in src.
constexpr std::string_view kProjectFiles[] = {"setup.py", "pyproject.toml", "setup.cfg"};

bool is_project(const fs::path& folder) {
  return std::any_of(std::begin(kProjectFiles), std::end(kProjectFiles), [&](std::string_view name) {
    std::error_code error;
    return fs::is_regular_file(folder / name, error);
  });
}

// To build in a folder is to run what lies in it: nobody else may have laid it there.
bool is_trusted(const fs::path& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && (info.st_uid == 0 || info.st_uid == geteuid()) &&
         (info.st_mode & S_IWOTH) == 0;
}

}  // namespace

std::optional<Package> SourceTrees::owner(const std::string& path) {
  // Programs of the same folder are not what pip builds.
  if (basename_of(path).find(".so") == std::string_view::npos) return std::nullopt;
  fs::path folder = fs::path(path).parent_path();
  for (int level = 0; level < kMostParents && folder.has_relative_path();
       ++level, folder = folder.parent_path()) {
    const std::string_view below = std::string_view(path).substr(folder.string().size() + 1);
    std::optional<Package> out;
    for (const Tree& tree : trees(folder.string())) {
      if (!lists_module(tree.modules, below)) continue;
      if (out) {
        out->also.push_back(tree.package.label());
      } else {
        out = tree.package;
      }
    }
    if (out) return out;
  }
  return std::nullopt;
}

const std::vector<SourceTrees::Tree>& SourceTrees::trees(const std::string& folder) {
  const auto [at, added] = trees_.try_emplace(folder);
  if (!added) return at->second;
  const fs::path above = fs::path(folder).parent_path();
  const std::string project = is_project(folder)  ? folder
                              : is_project(above) ? above.string()
                                                  : std::string();
  if (project.empty() || !is_trusted(project)) return at->second;
  for (const std::string& name : names_in(folder, budget_)) {
    if (!name.ends_with(kEggInfo) || at->second.size() >= kMostTrees) continue;
    const fs::path info = fs::path(folder) / name;
    const auto metadata = read_bounded(info / "PKG-INFO", kLargestText, budget_);
    const auto modules = read_bounded(info / "top_level.txt", kLargestText, budget_);
    if (!metadata || !modules || !is_trusted(info)) continue;
    Tree tree;
    tree.package.manager = "pip";
    tree.package.source = std::string(kEditable) + project;
    read_metadata(*metadata, tree.package);
    if (tree.package.name.empty()) continue;
    tree.modules = lines_of(*modules);
    at->second.push_back(std::move(tree));
  }
  return at->second;
}

}  // namespace kshim::packages
