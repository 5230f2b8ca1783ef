// SPDX-License-Identifier: Apache-2.0
// Words on the host's stderr. Never blocks (a full pipe loses the line), never raises SIGPIPE, and never
// writes into a file of the host that was given number 2 because stderr was closed.
#pragma once
#include <string_view>

#include "guest/options.h"

namespace kshim::shim {

/// Remembers what fd 2 is; called by the constructor.
void remember_stderr() noexcept;
/// Whether lines of this level are wanted.
bool log_enabled(LogLevel level) noexcept;
/// One line, "kshim: " in front and a newline behind; control characters are replaced. At most 4 KiB.
void log_line(LogLevel level, std::string_view line) noexcept;
/// Names the bad values of options on stderr, once a process. For the begin of a report: processes without
/// CUDA stay silent.
void warn_about_options() noexcept;
/// `text` as it stands, at most 4 KiB (what a pipe takes in one piece).
void write_stderr(std::string_view text) noexcept;
/// A text that a terminal shows as it is: control characters and bytes that are not UTF-8 become '?'.
void append_printable(std::string_view raw, char* out, std::size_t capacity, std::size_t& size) noexcept;

}  // namespace kshim::shim
