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

}  // namespace

Finder::Finder(const fs::path& root, LookupBudget budget) : root_(root), budget_(budget) {}

const std::optional<Package>& Finder::of(const std::string& path) {
  static const std::optional<Package> none;
  for (const auto* known : {&known_, &by_notes_})
    if (const auto found = known->find(path); found != known->end()) return found->second;
  if (known_.size() + by_notes_.size() >= kMaxAsked) return none;
  const std::string normal = normal_path(path);
  auto found = normal.empty() ? std::nullopt : listed(normal);
  const bool by_notes = !found && !normal.empty() && !site_path(normal);
  if (by_notes) found = python_.editable(normal);
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
  if (auto out = conda_.owner(path)) return out;
  return python_.owner(path);
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
  if (root_ != "/" || !may_be_system(path)) return std::nullopt;
  if (auto out = dpkg_.owner(names_of(root_, path))) return out;
  return rpm_.owner(path);
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

}  // namespace kshim::owner
