// SPDX-License-Identifier: Apache-2.0
#include "report/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "guest/safe_memory.h"
#include "guest/scratch_stack.h"
#include "guest/slices.h"

namespace kshim::shim {
namespace {

constexpr std::string_view kNames[] = {
#define KSHIM_ENVIRONMENT(name) name,
#include "report/environment.def"
#undef KSHIM_ENVIRONMENT
};

}  // namespace

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

constexpr std::size_t kPage = 4096;

/// What lies from one text on. The texts that a process starts with lie side by side.
class Texts {
 public:
  /// The zero-terminated text there, cut to the room; empty if it cannot be read.
  std::string_view at(const char* place) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    if (address >= begin_ && address - begin_ < size_)
      if (const std::string_view rest(room_ + (address - begin_), size_ - (address - begin_));
          rest.find('\0') != std::string_view::npos)
        return rest.substr(0, rest.find('\0'));
    begin_ = address;
    size_ = 0;
    std::size_t end = std::string_view::npos;
    while (size_ < sizeof room_ && end == std::string_view::npos) {
      // A read stays within a page, so it can be done in full or not at all.
      const std::size_t part = std::min(kPage - (address + size_) % kPage, sizeof room_ - size_);
      if (!read_memory(address + size_, room_ + size_, part)) return {};
      size_ += part;
      end = std::string_view(room_, size_).find('\0');
    }
    return std::string_view(room_, size_).substr(0, end);
  }

 private:
  std::uintptr_t begin_ = 0;
  std::size_t size_ = 0;
  char room_[kPage];
};

/// Calls visit(entry) for each "NAME=value" until it returns false.
template <class Visit>
void each_variable(const Visit& visit) noexcept {
  constexpr std::size_t kMaxEntries = 4096;
  constexpr std::size_t kAtOnce = 32;
  Texts texts;
  auto list = reinterpret_cast<std::uintptr_t>(__environ);
  for (std::size_t done = 0; list != 0 && done < kMaxEntries;) {
    const char* entries[kAtOnce];
    const std::size_t count = std::clamp<std::size_t>((kPage - list % kPage) / sizeof *entries, 1, kAtOnce);
    if (!read_memory(list, entries, count * sizeof *entries)) return;
    for (std::size_t i = 0; i < count; ++i)
      if (entries[i] == nullptr || !visit(texts.at(entries[i]))) return;
    done += count;
    list += count * sizeof *entries;
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

void find_switches(std::span<Switch> switches) noexcept {
  const auto look = [&](std::string_view entry) {
    for (Switch& each : switches)
      if (!each.known && entry.starts_with(each.name) && part_of(entry, each.name.size(), 1) == "=") {
        each.known = true;
        each.on = part_of(entry, each.name.size() + 1) == "1";
      }
    return true;
  };
  on_new_stack([&] { each_variable(look); });
}

std::string_view EnvironmentCopy::find(std::string_view name) const noexcept {
  for (const report::EnvRow& row : rows())
    if (row.name == name) return row.value;
  return {};
}

}  // namespace kshim::shim
