// SPDX-License-Identifier: Apache-2.0
#include "report/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "guest/safe_memory.h"
#include "guest/slices.h"

namespace kshim::shim {
namespace {

constexpr std::string_view kNames[] = {
#define KSHIM_ENVIRONMENT(name) name,
#include "report/environment.def"
#undef KSHIM_ENVIRONMENT
};

}  // namespace

std::string_view read_text(const char* from, char* to, std::size_t capacity) noexcept {
  constexpr std::size_t kChunk = 256;
  std::size_t size = 0;
  while (size < capacity) {
    // A chunk stays within a page, so it can be read in full or not at all.
    const auto address = reinterpret_cast<std::uintptr_t>(from) + size;
    const std::size_t chunk = std::min({kChunk - address % kChunk, capacity - size});
    if (!read_memory(address, to + size, chunk)) return {};
    const void* end = std::memchr(to + size, 0, chunk);
    if (end != nullptr) return {to, static_cast<std::size_t>(static_cast<const char*>(end) - to)};
    size += chunk;
  }
  return {to, size};
}

std::string_view EnvironmentCopy::store(std::string_view text) noexcept {
  if (text.size() > sizeof text_ - text_used_) return {};
  char* const start = text_ + text_used_;
  std::memcpy(start, text.data(), text.size());
  text_used_ += text.size();
  return {start, text.size()};
}

void EnvironmentCopy::add_variable(std::string_view entry) noexcept {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = entry.substr(0, equals);
  const std::string_view value = part_of(entry, equals + 1);
  if (name == "TMPDIR" && value.starts_with('/')) temporary_folder_ = store(value);
  if (name == "HOME" && value.size() > 1 && value.starts_with('/')) {
    user_.home = store(value);
    while (user_.home.ends_with('/')) user_.home.remove_suffix(1);
  }
  if ((name == "USER" || (name == "LOGNAME" && user_.name.empty())) && value != "root")
    user_.name = store(value);
  for (const std::string_view wanted : kNames) {
    if (name != wanted || count_ == kMaxRows) continue;
    const std::string_view kept = store(value);
    if (kept.data() != nullptr) rows_[count_++] = {wanted, kept};
  }
}

namespace {

/// Calls visit(entry) for each "NAME=value" until it returns false.
template <class Visit>
void each_variable(const Visit& visit) noexcept {
  constexpr std::size_t kMaxEntries = 4096;
  char** const list = __environ;
  for (std::size_t i = 0; list != nullptr && i < kMaxEntries; ++i) {
    const char* entry = nullptr;
    char text[4096];
    if (!read_memory(reinterpret_cast<std::uintptr_t>(list + i), &entry, sizeof entry) || entry == nullptr)
      return;
    if (!visit(read_text(entry, text, sizeof text))) return;
  }
}

}  // namespace

void EnvironmentCopy::capture() noexcept {
  count_ = 0;
  text_used_ = 0;
  temporary_folder_ = "/tmp";
  user_ = {};
  each_variable([this](std::string_view entry) {
    add_variable(entry);
    return true;
  });
  const std::string_view folder = part_of(user_.home, user_.home.rfind('/') + 1);
  if (user_.name.empty() && folder != "root") user_.name = folder;
}

bool is_set_to(std::string_view name, std::string_view value) noexcept {
  bool same = false;
  each_variable([&](std::string_view entry) {
    if (!entry.starts_with(name) || part_of(entry, name.size(), 1) != "=") return true;
    same = part_of(entry, name.size() + 1) == value;
    return false;
  });
  return same;
}

std::string_view EnvironmentCopy::find(std::string_view name) const noexcept {
  for (const report::EnvRow& row : rows())
    if (row.name == name) return row.value;
  return {};
}

}  // namespace kshim::shim
