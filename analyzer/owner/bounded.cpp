// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/bounded.h"

#include <algorithm>
#include <system_error>

#include "kshim/files/open_file.h"

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestPath = 4096;  // PATH_MAX

bool take(std::uint64_t& from, std::uint64_t amount) {
  if (from < amount) return false;
  from -= amount;
  return true;
}

}  // namespace

std::optional<std::string> read_bounded(const fs::path& path, std::uint64_t most, Budget& budget) {
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

std::vector<std::string> names_in(const fs::path& folder, Budget& budget) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!take(budget.entries, 1)) return {};
    out.push_back(entry->path().filename().string());
  }
  std::sort(out.begin(), out.end());
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

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  each_line(text, [&](std::string_view line) {
    if (!line.empty()) out.emplace_back(line);
    return true;
  });
  return out;
}

std::string normal_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() >= kLongestPath || path.find('\0') != std::string_view::npos)
    return {};
  return fs::path(path).lexically_normal().string();
}

}  // namespace kshim::packages
