// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "kshim/files/open_file.h"

namespace kshim::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as Linux has it (path_resolution(7))
constexpr std::size_t kMostNames = 4096;

}  // namespace

Machine::Machine(fs::path root, std::map<std::string, std::string> environment)
    : root_(std::move(root)), environment_(std::move(environment)), live_(root_ == "/") {}

std::string_view Machine::env(std::string_view name) const {
  const auto found = environment_.find(std::string(name));
  return found == environment_.end() ? std::string_view() : std::string_view(found->second);
}

bool Machine::has_env(std::string_view name) const { return environment_.count(std::string(name)) != 0; }

std::string Machine::real(std::string_view path) const {
  if (path.substr(0, 1) != "/" || path.find('\0') != std::string_view::npos) return {};
  fs::path rest = fs::path(path).relative_path();
  fs::path done = "/";
  int links = 0;
  while (!rest.empty()) {
    const fs::path part = *rest.begin();
    fs::path after;
    for (auto it = std::next(rest.begin()); it != rest.end(); ++it) after /= *it;
    rest = after;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      done = done.parent_path();
      continue;
    }
    std::error_code error;
    const fs::path here = root_ / (done / part).relative_path();
    const fs::file_status status = fs::symlink_status(here, error);
    if (status.type() == fs::file_type::symlink) {
      if (++links > kMostLinks) return {};
      const fs::path target = fs::read_symlink(here, error);
      if (error) return {};
      rest = target.is_absolute() ? target.relative_path() / rest : target / rest;
      if (target.is_absolute()) done = "/";
      continue;
    }
    if (!fs::exists(status)) return {};
    done /= part;
  }
  return done.string();
}

fs::path Machine::at(std::string_view path) const {
  const std::string there = real(path);
  return there.empty() ? fs::path() : root_ / fs::path(there).relative_path();
}

bool Machine::is_folder(std::string_view path) const {
  std::error_code error;
  const fs::path there = at(path);
  return !there.empty() && fs::is_directory(there, error);
}

bool Machine::is_file(std::string_view path) const {
  std::error_code error;
  const fs::path there = at(path);
  return !there.empty() && fs::is_regular_file(there, error);
}

bool Machine::is_executable(std::string_view path) const {
  if (!is_file(path)) return false;
  std::error_code error;
  const fs::perms rights = fs::status(at(path), error).permissions();
  constexpr fs::perms kAny = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  return !error && (rights & kAny) != fs::perms::none;
}

std::string Machine::read(std::string_view path, std::size_t most) const {
  if (!is_file(path)) return {};
  return files::read_up_to(at(path), most).value_or("");
}

std::vector<std::string> Machine::names(std::string_view folder) const {
  std::vector<std::string> out;
  std::error_code error;
  const fs::path there = at(folder);
  if (there.empty()) return out;
  for (fs::directory_iterator entry(there, error), end; !error && entry != end && out.size() < kMostNames;
       entry.increment(error))
    out.push_back(entry->path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string join_path(std::string_view folder, std::string_view name) {
  while (folder.size() > 1 && folder.back() == '/') folder.remove_suffix(1);
  return std::string(folder) + (folder == "/" ? "" : "/") + std::string(name);
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t mark = text.find('=');
    if (mark != std::string_view::npos) out.emplace(text.substr(0, mark), text.substr(mark + 1));
  }
  // ld.so(8): parts that are no absolute paths begin in the working directory.
  const auto folders = out.find("LD_LIBRARY_PATH");
  if (folders == out.end()) return out;
  std::string whole;
  for (const std::string& folder : split(folders->second, ":;")) {
    if (!whole.empty()) whole += ':';
    whole += folder.empty() ? std::string() : std::filesystem::absolute(folder).lexically_normal().string();
  }
  folders->second = whole;
  return out;
}

Machine this_machine() { return {"/", own_environment()}; }

}  // namespace kshim::doctor
