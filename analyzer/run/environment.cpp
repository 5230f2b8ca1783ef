// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace kshim::cli {
namespace {

bool is_entry_of(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.substr(0, name.size()) == name && entry[name.size()] == '=';
}

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_sanitizer_runtime(std::string_view path) {
  constexpr std::array<std::string_view, 7> kRuntimes = {"libasan.",   "liblsan.", "libtsan.",    "libubsan.",
                                                         "libhwasan.", "libmsan.", "libclang_rt."};
  const std::string_view file = file_name(path);
  return std::any_of(kRuntimes.begin(), kRuntimes.end(),
                     [&](std::string_view runtime) { return file.substr(0, runtime.size()) == runtime; });
}

}  // namespace

Environment Environment::current() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.entries_.emplace_back(*entry);
  }
  return environment;
}

std::string_view Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (is_entry_of(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  }
  return {};
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string text = std::string(name) + '=' + std::string(value);
  for (std::string& entry : entries_) {
    if (is_entry_of(entry, name)) {
      entry = std::move(text);
      return;
    }
  }
  entries_.push_back(std::move(text));
}

void Environment::prepend(std::string_view name, std::string_view value, char separator) {
  const std::string before(get(name));
  set(name, before.empty() ? std::string(value) : std::string(value) + separator + before);
}

void Environment::append(std::string_view name, std::string_view value, char separator) {
  const std::string before(get(name));
  set(name, before.empty() ? std::string(value) : before + separator + std::string(value));
}

std::vector<char*> Environment::pointers() {
  std::vector<char*> pointers;
  pointers.reserve(entries_.size() + 1);
  for (std::string& entry : entries_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string merge_preload(std::string_view existing, std::string_view shim) {
  std::string first;
  std::string rest;
  const auto add = [](std::string& list, std::string_view entry) {
    if (!list.empty()) list += ':';
    list += entry;
  };
  // ld.so(8): the entries may be separated by spaces or colons.
  while (!existing.empty()) {
    const std::size_t end = std::min(existing.find_first_of(": "), existing.size());
    const std::string_view entry = existing.substr(0, end);
    existing.remove_prefix(std::min(end + 1, existing.size()));
    if (entry.empty() || file_name(entry) == file_name(shim)) continue;
    add(is_sanitizer_runtime(entry) ? first : rest, entry);
  }
  add(first, shim);
  if (!rest.empty()) add(first, rest);
  return first;
}

}  // namespace kshim::cli
