// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/finder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/core/text.h"

namespace kshim::owner {
namespace {

namespace fs = std::filesystem;

// A thousand reports of a cluster name some thousand files; more are not looked up.
constexpr std::size_t kMaxAsked = 50'000;

/// Debian's and Fedora's own Python packages lie there; pip installs into /usr/local or a home folder.
bool is_distributions_python(const std::string& path) {
  return path.starts_with("/usr/lib/") || path.starts_with("/usr/lib64/");
}

constexpr std::string_view kEggInfo = ".egg-info";
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxTrees = 64;
constexpr int kMaxParents = 12;
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

Finder::Finder(const fs::path& root, LookupBudget budget)
    : root_(root), budget_(budget), dpkg_(root, budget_) {}

const std::optional<Package>& Finder::of(const std::string& path) {
  static const std::optional<Package> none;
  for (const auto* known : {&known_, &by_notes_})
    if (const auto found = known->find(path); found != known->end()) return found->second;
  if (known_.size() + by_notes_.size() >= kMaxAsked) return none;
  const std::string normal = normal_path(path);
  auto found = normal.empty() ? std::nullopt : listed(normal);
  const bool by_notes = !found && !normal.empty() && !site_path(normal);
  if (by_notes) {
    found = python_.editable(normal);
    if (!found) found = sources_.owner(normal);
  }
  if (found && found->environment.empty()) found->environment = environment(normal);
  return (by_notes ? by_notes_ : known_).emplace(path, std::move(found)).first->second;
}

// The best source first: what conda installed has a RECORD as well, and so has some of what Debian did.
std::optional<Package> Finder::listed(const std::string& path) {
  if (auto out = conda_.owner(path)) return out;
  struct stat info {};
  const bool there = ::lstat((root_ / fs::path(path).relative_path()).c_str(), &info) == 0;
  if (site_path(path)) {
    if (there && is_distributions_python(path)) {
      if (auto out = system_owner(path)) return out;
    }
    if (auto out = python_.owner(path)) return out;
  }
  return there ? system_owner(path) : std::nullopt;
}

std::optional<Package> Finder::in_root(const std::string& below) {
  const std::string path = (root_ / below).string();
  const std::string own = "/" + below;
  if (auto out = conda_.owner(path)) return out;
  if (site_path(path) && is_distributions_python(own)) {
    if (auto out = system_owner(own)) return out;
  }
  if (auto out = python_.owner(path)) return out;
  return system_owner(own);
}

void Finder::note(const std::string& path) {
  if (python_.note(path)) by_notes_.clear();  // they may be somebody's now
}

void Finder::forget() {
  python_.forget();
  by_notes_.clear();
}

void Finder::note_program(const std::string& path) {
  const std::string normal = normal_path(path);
  if (normal.empty()) return;
  const fs::path library = fs::path(normal).parent_path().parent_path() / "lib";
  std::error_code error;
  if (!fs::is_regular_file(library.parent_path() / "pyvenv.cfg", error)) return;
  for (const std::string& name : names_in(library, budget_)) {
    if (name.starts_with("python")) note((library / name / "site-packages" / "x").string());
  }
}

std::optional<Package> Finder::system_owner(const std::string& path) {
  if (!may_be_system(path)) return std::nullopt;
  if (auto out = dpkg_.owner(names_of(root_, path))) return out;
  return root_ == "/" ? rpm_.owner(path) : std::nullopt;
}

std::string Finder::environment(const std::string& path) {
  const std::string& conda = conda_.prefix(path);
  if (!conda.empty()) return conda;
  const auto place = site_path(path);
  if (!place) return {};
  // PREFIX/lib/python3.11/site-packages of a virtual environment (PEP 405).
  const fs::path prefix = fs::path(place->folder).parent_path().parent_path().parent_path();
  std::error_code error;
  return fs::is_regular_file(prefix / "pyvenv.cfg", error) ? prefix.string() : std::string();
}

std::optional<Package> SourceTrees::owner(const std::string& path) {
  // Programs of the same folder are not what pip builds.
  if (basename_of(path).find(".so") == std::string_view::npos) return std::nullopt;
  fs::path folder = fs::path(path).parent_path();
  for (int level = 0; level < kMaxParents && folder.has_relative_path();
       ++level, folder = folder.parent_path()) {
    const std::string_view below = std::string_view(path).substr(folder.string().size() + 1);
    std::optional<Package> out;
    for (const Tree& tree : trees(folder.string())) {
      if (!contains(tree.modules, below.substr(0, below.find_first_of("/.")))) continue;
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
    if (!name.ends_with(kEggInfo) || at->second.size() >= kMaxTrees) continue;
    const fs::path info = fs::path(folder) / name;
    const auto metadata = read_bounded(info / "PKG-INFO", kMaxTextBytes, budget_);
    const auto modules = read_bounded(info / "top_level.txt", kMaxTextBytes, budget_);
    if (!metadata || !modules || !is_trusted(info)) continue;
    Tree tree;
    tree.package.manager = "pip";
    tree.package.source = std::string(kEditable) + project;
    read_metadata(*metadata, tree.package);
    if (tree.package.name.empty()) continue;
    each_line(*modules, [&tree](std::string_view line) {
      if (!line.empty()) tree.modules.emplace_back(line);
      return true;
    });
    at->second.push_back(std::move(tree));
  }
  return at->second;
}

}  // namespace kshim::owner
