// SPDX-License-Identifier: Apache-2.0
// Writes lines to the host's stderr. Never blocks (a full pipe loses the line), never raises SIGPIPE, and
// never writes to a file of the host that got descriptor 2 after stderr was closed.
#pragma once
#include <string_view>

#include "guest/options.h"

namespace kshim::shim {

/// Remembers which file descriptor 2 refers to. Call it once, in the constructor.
void remember_stderr() noexcept;
/// Whether lines of this level are written.
bool log_enabled(LogLevel level) noexcept;
/// From now on none are: what a compiler prints is read by the program that started it.
void keep_silent() noexcept;
/// Writes "kshim: ", the line and a newline; control characters are replaced. At most 4 KiB.
void log_line(LogLevel level, std::string_view line) noexcept;
/// Names the bad values of options on stderr, once a process. Call it when a report begins: processes without
/// CUDA print nothing.
void warn_about_options() noexcept;
/// Writes `text` unchanged but for secrets, at most 4 KiB (a pipe takes that many bytes in one piece).
void write_stderr(std::string_view text) noexcept;
/// Appends `raw` to `out`; control characters and bytes that are not UTF-8 become '?'.
void append_printable(std::string_view raw, char* out, std::size_t capacity, std::size_t& size) noexcept;

}  // namespace kshim::shim
