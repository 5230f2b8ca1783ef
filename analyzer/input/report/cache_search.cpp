// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/cache_search.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <variant>
#include <vector>

#include "analyzer/device_code/mapped_file.h"
#include "kshim/base/hash.h"

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostQuestions = 256;
constexpr int kDeepest = 8;
// Some write a checksum in front of the code (CuPy), or end a text with a NUL.
constexpr std::uint64_t kMostAround = 256;
constexpr std::uint64_t kLargest = std::uint64_t{256} << 20;

// The folders that a row stands for: what the variable says, else the default.
std::vector<fs::path> folders_of(const CacheRow& row, const CacheSearch::Environment& environment) {
  const auto set = environment.find(std::string(row.variable));
  if (set != environment.end() && !set->second.empty()) return {fs::path(set->second)};
  fs::path place(row.fallback);
  if (place.is_relative()) {
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == '\0') return {};
    return {fs::path(home) / place};
  }
  const std::string pattern = place.filename().string();
  if (!pattern.ends_with('*')) return {place};
  std::vector<fs::path> out;
  std::error_code error;
  fs::directory_iterator at(place.parent_path(), error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(pattern.substr(0, pattern.size() - 1)) &&
        at->symlink_status(ignored).type() == fs::file_type::directory)
      out.push_back(at->path());
  }
  return out;
}

bool has_content(const std::string& path, std::uint64_t hash, std::uint64_t size) {
  const auto opened = MappedFile::open(path);
  const auto* file = std::get_if<MappedFile>(&opened);
  if (file == nullptr || file->bytes().size() < size) return false;
  const Bytes bytes = file->bytes();
  const auto at = [&](std::uint64_t offset) {
    return content_hash(bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size))) ==
           hash;
  };
  return at(0) || (bytes.size() > size && at(bytes.size() - size));
}

// Triton's folders are named by a hash. Whatever else lies around a file is not ours to name for deletion.
bool is_key(std::string_view folder) {
  constexpr std::size_t kShortest = 26;
  return folder.size() >= kShortest && std::all_of(folder.begin(), folder.end(), [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                  (letter >= 'A' && letter <= 'Z') || letter == '_' || letter == '-';
         });
}

std::string entry_of(const CacheRow& row, const std::string& file, const std::string& folder) {
  const fs::path parent = fs::path(file).parent_path();
  const bool whole = row.whole_folder && parent != fs::path(folder) && is_key(parent.filename().string());
  return whole ? parent.string() : file;
}

}  // namespace

const std::multimap<std::uint64_t, CacheSearch::Known>& CacheSearch::files_in(const std::string& folder,
                                                                              const CacheRow& cache) {
  const auto [found, first] = folders_.try_emplace(folder);
  if (!first) return found->second;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end && files_left_ != 0;
       at.increment(error)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    std::error_code ignored;
    if (at->symlink_status(ignored).type() != fs::file_type::regular) continue;
    --files_left_;
    const std::uint64_t size = at->file_size(ignored);
    if (!ignored) found->second.emplace(size, Known{at->path().string(), size, &cache, folder});
  }
  return found->second;
}

std::optional<CachedCode> CacheSearch::find(std::uint64_t hash, std::uint64_t size,
                                            const Environment& environment) {
  if (hash == 0 || size == 0 || size > kLargest) return std::nullopt;
  const auto known = answers_.find(hash);
  if (known != answers_.end()) return known->second;
  if (answers_.size() == kMostQuestions) return std::nullopt;
  return answers_[hash] = look_for(hash, size, environment);
}

std::optional<CachedCode> CacheSearch::look_for(std::uint64_t hash, std::uint64_t size,
                                                const Environment& environment) {
  for (const CacheRow& row : caches()) {
    for (const fs::path& folder : folders_of(row, environment)) {
      const auto& files = files_in(folder.string(), row);
      for (auto at = files.lower_bound(size); at != files.end() && at->first <= size + kMostAround; ++at) {
        if (hashed_left_ < 2 * size) return std::nullopt;
        hashed_left_ -= 2 * size;
        if (!has_content(at->second.path, hash, size)) continue;
        return CachedCode{&row, folder.string(), at->second.path,
                          entry_of(row, at->second.path, folder.string())};
      }
    }
  }
  return std::nullopt;
}

std::optional<CachedCode> CacheSearch::holding(const std::string& path, const Environment& environment) {
  for (const CacheRow& row : caches()) {
    for (const fs::path& folder : folders_of(row, environment)) {
      const std::string prefix = folder.lexically_normal().string() + "/";
      if (path.starts_with(prefix))
        return CachedCode{&row, folder.string(), path, entry_of(row, path, folder.string())};
    }
  }
  return std::nullopt;
}

}  // namespace kshim::analysis
