// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/bounded.h"

#include "analyzer/core/text.h"
#include "kshim/files/open_file.h"

namespace kshim::owner {
using core::contains;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPathLength = 4096;  // PATH_MAX

bool take(std::uint64_t& from, std::uint64_t amount) {
  if (from < amount) return false;
  from -= amount;
  return true;
}

constexpr std::size_t kMaxIndexed = 8'000'000;

std::uint64_t hash_of(std::string_view path) { return std::hash<std::string_view>{}(path); }

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
  if (!contains(names, name)) names.push_back(std::move(name));
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

std::optional<std::string> read_bounded(const fs::path& path, std::uint64_t most, LookupBudget& budget) {
  if (!take(budget.entries, 1)) return std::nullopt;
  const files::OpenFile file = files::open_to_read(path);
  if (!file || file.status.st_size < 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(file.status.st_size);
  if (size > most || !take(budget.bytes, size)) return std::nullopt;
  std::string out(static_cast<std::size_t>(size), '\0');
  // A file that shrinks meanwhile gives fewer bytes, one that grows no more.
  const std::optional<std::size_t> got = files::read_at(file.fd.get(), 0, out);
  if (!got) return std::nullopt;
  out.resize(*got);
  return out;
}

std::vector<std::string> names_in(const fs::path& folder, LookupBudget& budget, std::string_view ending) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!take(budget.entries, 1)) return {};
    if (entry->path().native().ends_with(ending)) out.push_back(entry->path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

void each_line(std::string_view text, const std::function<bool(std::string_view)>& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!visit(line)) return;
  }
}

std::string normal_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() >= kMaxPathLength || contains(path, '\0')) return {};
  // Most are normal, and taking one apart costs more than most of what is done with it.
  if (!contains(path, "//") && !contains(path, "/.")) return std::string(path);
  return fs::path(path).lexically_normal().string();
}

void PathIndex::add(std::string_view path, Owner owner) {
  if (rows_.size() < kMaxIndexed) rows_.emplace_back(hash_of(path), owner);
}

std::vector<PathIndex::Owner> PathIndex::owners(std::string_view path) const {
  constexpr unsigned kWorthSorting = 16;
  const std::uint64_t hash = hash_of(path);
  std::vector<Owner> out;
  if (asked_ < kWorthSorting && ++asked_ == kWorthSorting) std::ranges::sort(rows_);
  const bool sorted = asked_ == kWorthSorting;
  for (auto at = sorted ? std::ranges::lower_bound(rows_, std::pair(hash, Owner{0})) : rows_.begin();
       at != rows_.end() && (!sorted || at->first == hash); ++at)
    if (at->first == hash) out.push_back(at->second);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

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

std::optional<fs::path> resolve_in(const fs::path& root, std::string_view path) {
  constexpr int kMaxLinks = 40;  // as Linux has it (path_resolution(7))
  fs::path rest = fs::path(path).relative_path();
  fs::path done;
  for (int links = 0; !rest.empty();) {
    const fs::path part = *rest.begin();
    fs::path after;
    for (auto it = std::next(rest.begin()); it != rest.end(); ++it) after /= *it;
    rest = after;
    if (part == "..") done = done.parent_path();
    if (part.empty() || part == "." || part == "..") continue;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(root / done / part, error);
    if (!fs::exists(status)) return std::nullopt;
    if (status.type() != fs::file_type::symlink) {
      done /= part;
      continue;
    }
    const fs::path target = fs::read_symlink(root / done / part, error);
    if (error || ++links > kMaxLinks) return std::nullopt;
    rest = target.relative_path() / rest;
    if (target.is_absolute()) done.clear();
  }
  return done;
}

bool may_be_system(const std::string& path) {
  // The folders of the Filesystem Hierarchy Standard that packages of a distribution put libraries into.
  constexpr std::string_view kFolders[] = {"/usr/", "/opt/", "/lib", "/bin/", "/sbin/", "/etc/", "/var/"};
  return std::ranges::any_of(kFolders, [&](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace kshim::owner
