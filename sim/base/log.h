// SPDX-License-Identifier: Apache-2.0
// Lines on stderr, each beginning "kshim sim:", as KSHIM_LOG asks (off error warn info debug; default warn).
#pragma once
#include <cstdint>
#include <string_view>

namespace kshim::sim {

enum class LogLevel : std::uint8_t { off, error, warn, info, debug };

LogLevel log_level() noexcept;
/// One write(2), so that lines of several threads and processes do not mix.
void log_line(LogLevel level, std::string_view text) noexcept;

}  // namespace kshim::sim
