// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace kshim::sim {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"off", "error", "warn", "info", "debug"};

void put(std::string_view text) noexcept {
  std::array<char, 1024> line;
  constexpr std::string_view prefix = "kshim sim: ";
  const std::size_t size =
      text.size() < line.size() - prefix.size() - 1 ? text.size() : line.size() - prefix.size() - 1;
  std::memcpy(line.data(), prefix.data(), prefix.size());
  std::memcpy(line.data() + prefix.size(), text.data(), size);
  line[prefix.size() + size] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), prefix.size() + size + 1);
}

LogLevel read_level() noexcept {
  const char* value = std::getenv("KSHIM_LOG");
  if (value == nullptr) return LogLevel::warn;
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == value) return static_cast<LogLevel>(i);
  }
  // If the shim is present, it names a bad value of this variable itself.
  return LogLevel::warn;
}

}  // namespace

LogLevel log_level() noexcept {
  static const LogLevel level = read_level();
  return level;
}

void log_line(LogLevel level, std::string_view text) noexcept {
  if (level <= log_level()) put(text);
}

}  // namespace kshim::sim
