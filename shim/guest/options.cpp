// SPDX-License-Identifier: Apache-2.0
#include "guest/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "guest/auxiliary_vector.h"
#include "guest/own_file.h"
#include "guest/program_path.h"
#include "guest/selection.h"
#include "guest/slices.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/image/compute_capability.h"

namespace kshim::shim {
namespace {

constexpr std::string_view kDefaults[] = {
#define KSHIM_OPTION(id, name, fallback, meaning) fallback,
#include "guest/options.def"
#undef KSHIM_OPTION
};
constexpr std::string_view kNames[] = {
#define KSHIM_OPTION(id, name, fallback, meaning) name,
#include "guest/options.def"
#undef KSHIM_OPTION
};
enum class OptionId : std::size_t {
#define KSHIM_OPTION(id, name, fallback, meaning) id,
#include "guest/options.def"
#undef KSHIM_OPTION
};
constexpr std::string_view default_of(OptionId id) noexcept {
  return kDefaults[static_cast<std::size_t>(id)];
}

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Calls accept(item) for every item between separators until it returns false; empty items are skipped.
template <class Accept>
bool for_each_item(std::string_view text, std::string_view separators, Accept accept) noexcept {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    const std::string_view item = trim(text.substr(0, end));
    text.remove_prefix(end == text.size() ? end : end + 1);
    if (!item.empty() && !accept(item)) return false;
  }
  return true;
}

/// One of the words, by its place.
template <class Choice>
bool parse_choice(std::string_view value, std::initializer_list<std::string_view> words,
                  Choice& out) noexcept {
  const auto* const found = std::find(words.begin(), words.end(), value);
  if (found == words.end()) return false;
  out = static_cast<Choice>(found - words.begin());
  return true;
}

/// 65536, 64K, 64M, 1G; not 0.
bool parse_size(std::string_view value, std::uint64_t& out) noexcept {
  constexpr std::string_view kUnits = "KMG";
  unsigned shift = 0;
  if (const std::size_t unit = kUnits.find(value.back()); unit != std::string_view::npos) {
    shift = 10 * static_cast<unsigned>(unit + 1);
    value.remove_suffix(1);
  }
  std::uint64_t number = 0;
  if (value.empty() || value.size() > 9) return false;
  for (const char c : value) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (number == 0) return false;
  out = number << shift;
  return true;
}

bool parse_backtrace(std::string_view value, Options& out) noexcept {
  bool native = false;
  bool python = false;
  bool off = false;
  const bool known = for_each_item(value, ",", [&](std::string_view item) {
    (item == "native" ? native : item == "python" ? python : off) = true;
    return item == "native" || item == "python" || item == "off";
  });
  if (!known || (off && (native || python)) || !(off || native || python)) return false;
  out.native_stacks = native;
  out.python_stacks = python;
  return true;
}

bool parse_targets(std::string_view value, OptionsStorage& storage) noexcept {
  std::size_t count = 0;
  const bool known = for_each_item(value, ",; ", [&](std::string_view item) {
    const auto arch = image::parse_arch(item);
    if (!arch || image::find_compute_capability(arch->cc) == nullptr) return false;
    if (count == std::size(storage.targets)) return false;
    storage.targets[count++] = *arch;
    return true;
  });
  storage.target_count = known ? count : 0;
  return known;
}

/// Every % must begin %p, %h, %r or %%, and the last component must name a file.
bool is_pattern(std::string_view value) noexcept {
  if (value.empty() || value.back() == '/' || value.size() > 3000) return false;
  if (const std::string_view name = base_name(value); name == "." || name == "..") return false;
  for (std::size_t at = value.find('%'); at != std::string_view::npos; at = value.find('%', at + 2))
    if (at + 1 == value.size() || std::string_view("phr%").find(value[at + 1]) == std::string_view::npos)
      return false;
  return true;
}

std::string_view copy_text(OptionsStorage& storage, std::string_view text) noexcept {
  if (text.size() > sizeof storage.text - storage.used) return {};
  char* const start = storage.text + storage.used;
  std::memcpy(start, text.data(), text.size());
  storage.used += text.size();
  return {start, text.size()};
}

void parse_option(OptionId id, std::string_view value, OptionsStorage& storage, Options& out) noexcept {
  bool good = false;
  bool disabled = false;
  switch (id) {
    case OptionId::report: {
      good = is_pattern(value);
      const std::string_view kept = good ? copy_text(storage, value) : std::string_view();
      good = !kept.empty();
      if (good) out.report = kept, out.report_given = true;
      break;
    }
    case OptionId::log:
      good = parse_choice(value, {"off", "error", "warn", "info", "debug"}, out.log);
      break;
    case OptionId::backtrace:
      good = parse_backtrace(value, out);
      break;
    case OptionId::target:
      good = parse_targets(value, storage);
      out.targets = {storage.targets, storage.target_count};
      break;
    case OptionId::coverage:
      good = parse_choice(value, {"0", "1"}, out.coverage);
      break;
    case OptionId::repeats:
      good = parse_choice(value, {"milestones", "each"}, out.each_repeat);
      break;
    case OptionId::patch_table:
      good = parse_choice(value, {"0", "1"}, out.patch_table);
      break;
    case OptionId::images:
      good = parse_choice(value, {"0", "1"}, out.images);
      break;
    case OptionId::driver_log:
      good = parse_choice(value, {"0", "1"}, out.driver_log);
      break;
    case OptionId::argv:
      good = parse_choice(value, {"names", "full", "off"}, out.arguments);
      break;
    case OptionId::privacy:
      // Any other word is a file name. A file that has no key leaves the report private all the same.
      good = true;
      out.is_private = value != "0";
      out.key_file = value == "0" || value == "1" ? std::string_view() : copy_text(storage, value);
      break;
    case OptionId::mode:
      good = value == "0600" || value == "0640";
      if (good) out.mode = value == "0640" ? 0640 : 0600;
      break;
    case OptionId::max_bytes:
      good = parse_size(value, out.max_bytes);
      break;
    case OptionId::max_files:
      good = parse_size(value, out.max_files);
      break;
    case OptionId::programs:
      out.programs = copy_text(storage, value);
      good = !out.programs.empty();
      break;
    case OptionId::sample:
      good = parse_size(value, out.sample);
      break;
    case OptionId::disable:
      good = parse_choice(value, {"0", "1"}, disabled);
      if (good) out.enabled = !disabled;
      break;
  }
  if (good || storage.complaint_count == std::size(storage.complaints)) return;
  storage.complaints[storage.complaint_count++] = {kNames[static_cast<std::size_t>(id)],
                                                   copy_text(storage, value.substr(0, 200)), default_of(id)};
}

std::atomic<int> g_state{0};  // 0: to be parsed, 1: being parsed, 2: done
constinit OptionsStorage g_storage;
constinit Options g_options;
constexpr Options kPlainOptions{.report = default_of(OptionId::report)};

/// Without the text's length: each process reads all of its environment.
bool begins_with(const char* text, std::string_view start) noexcept {
  for (const char character : start)
    if (*text++ != character) return false;
  return true;
}

// No large buffer on the stack: every process comes here, some with a stack of a few pages.
void add_start_folder(OptionsStorage& storage, Options& out) noexcept {
  char* const folder = storage.text + storage.used;
  if (!raw::working_folder(folder, sizeof storage.text - storage.used)) return;
  out.start_folder = folder;
  struct stat info {};
  if (raw::status_of_path(".", info, raw::kAskNoServer) == 0) out.start_device = info.st_dev;
  storage.used += out.start_folder.size() + 1;
}

}  // namespace

void parse_options(const char* const* environment, OptionsStorage& storage, Options& out) noexcept {
  out = kPlainOptions;
  for (; *environment != nullptr; ++environment) {
    if (!begins_with(*environment, "KSHIM_")) continue;
    const std::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = part_of(entry, equals + 1);
    if (name == "KSHIM_RUN_ID") out.run_id = copy_text(storage, value.substr(0, 128));
    if (name == "KSHIM_RUN_SOCKET") out.run_socket = copy_text(storage, value.substr(0, 107));
    if (value.empty()) continue;  // an empty value counts as unset
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      if (name == kNames[i]) parse_option(static_cast<OptionId>(i), trim(value), storage, out);
  }
}

namespace {

/// A line of a settings file, and its end; the next begins behind it.
std::string_view next_line(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The lines of a file that root owns and only root can write, each whole; none of another file. A line of
/// more than 4 KiB is left out, and so is what is beyond 1 MiB.
template <class Visit>
void each_line_of_root(const char* path, Visit&& visit) noexcept {
  constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 20;
  const OwnFile file(raw::open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file || raw::status_of(file.get(), info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != 0 ||
      (info.st_mode & 022U) != 0)
    return;
  char text[4096];
  bool inside = false;  // of a line that is too long
  for (std::uint64_t at = 0; at < kMaxSize;) {
    std::string_view left(text, file.read(at, text, sizeof text));
    if (left.empty()) return;
    const bool last = left.size() < sizeof text;
    const std::size_t end = last ? left.size() : left.rfind('\n') + 1;  // npos + 1 is 0
    left = left.substr(0, end != 0 ? end : left.size());
    at += left.size();
    while (!left.empty()) {
      const bool whole = left.find('\n') != std::string_view::npos || (last && end != 0);
      const std::string_view line = next_line(left);
      if (!inside && whole) visit(line);
      inside = !whole;
    }
  }
}

[[gnu::noinline]] bool is_in_preload_file() noexcept {
  bool found = false;
  each_line_of_root("/etc/ld.so.preload", [&found](std::string_view line) {
    found = found || line.find("libkshim") != std::string_view::npos;
  });
  return found;
}

/// A root process that is preloaded by /etc/ld.so.preload may have inherited any user's environment (sudo -E,
/// cron helpers, daemons): it reads root's settings file only.
bool is_preloaded_for_all() noexcept {
  for (char** entry = __environ; *entry != nullptr; ++entry) {
    if (begins_with(*entry, "LD_PRELOAD=") &&
        std::string_view(*entry).find("libkshim") != std::string_view::npos)
      return false;
  }
  return raw::user() == 0 && is_in_preload_file();
}

}  // namespace

void begin_settings(Options& out) noexcept {
  out = kPlainOptions;
  out.own_settings = true;
}

void parse_setting(std::string_view text, OptionsStorage& storage, Options& out) noexcept {
  const std::string_view line = trim(text);
  const std::size_t equals = line.find('=');
  if (line.starts_with('#') || equals == std::string_view::npos) return;
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (trim(line.substr(0, equals)) == kNames[i] && equals + 1 < line.size())
      parse_option(static_cast<OptionId>(i), trim(part_of(line, equals + 1)), storage, out);
}

namespace {

[[gnu::noinline]] void parse_settings_of_root() noexcept {
  begin_settings(g_options);
  each_line_of_root("/etc/kshim/options",
                    [](std::string_view line) { parse_setting(line, g_storage, g_options); });
}

[[gnu::noinline]] bool is_this_program_watched() noexcept {
  char program[4096];
  const std::size_t size = read_program_path(program, sizeof program);
  return size == 0 || is_program_watched(g_options.programs, {program, size});
}

}  // namespace

const Options& options() noexcept {
  if (g_state.load(std::memory_order_acquire) == 2) return g_options;
  int expected = 0;
  if (__environ == nullptr || !g_state.compare_exchange_strong(expected, 1)) return kPlainOptions;
  if (is_preloaded_for_all())
    parse_settings_of_root();
  else
    parse_options(__environ, g_storage, g_options);
  if (!g_options.programs.empty() && g_options.run_id.data() == nullptr && g_options.enabled)
    g_options.enabled = is_this_program_watched();
  // The caller of a privileged program must not choose where that program writes.
  if (has_raised_rights()) g_options.enabled = false;
  if (g_options.enabled) add_start_folder(g_storage, g_options);
  g_state.store(2, std::memory_order_release);
  return g_options;
}

std::span<const OptionsStorage::Complaint> option_complaints() noexcept {
  if (g_state.load(std::memory_order_acquire) != 2) return {};
  return {g_storage.complaints, g_storage.complaint_count};
}

}  // namespace kshim::shim
