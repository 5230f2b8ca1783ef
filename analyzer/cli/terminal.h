// SPDX-License-Identifier: Apache-2.0
// What the terminal can do: colors only where a person looks, the width to fill, a progress bar.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::cli {

/// True on a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is dumb.
bool wants_color(int fd);
/// Columns of the terminal behind `fd`, or COLUMNS, or 80; never less than 40.
unsigned terminal_width(int fd);
/// Columns of text that goes into a file or a pipe.
constexpr unsigned kPageWidth = 100;
/// Columns of tables there: no name is cut.
constexpr unsigned kWholeLines = 1000;
/// Whether the locale (LC_ALL, LC_CTYPE, LANG) says UTF-8.
bool wants_unicode();

/// `kshim: error: text` and its like, on stderr, with the word colored on a terminal.
void print_error(std::string_view text);
/// Each as an error of its own, made harmless; of many the first ones and how many there are, unless `all`.
void print_errors(const std::vector<std::string>& texts, bool all);
void print_warning(std::string_view text);
void print_note(std::string_view text);

/// A file system that no longer answers (NFS without its server, FUSE without its daemon) blocks every
/// process that asks it. A thread ends the process with `status` once it has used no processor time for
/// `patience`. Called once, before work begins. Zero: waits on.
void end_on_stall(std::chrono::seconds patience, int status);
/// From now on with this status; without one the process goes on.
void on_stall(std::optional<int> status);

/// A bar on stderr for work that a person waits for: only on a terminal, only after a while, gone when done.
class ProgressBar {
 public:
  /// Shorter work than `patience` needs no bar.
  explicit ProgressBar(std::string what, std::chrono::milliseconds patience = std::chrono::milliseconds(500));
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Whether anybody sees it.
  bool shows() const noexcept { return on_terminal_; }
  /// `done` of `total`, in any unit.
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_;
  bool on_terminal_;
  bool drawn_ = false;
};

}  // namespace kshim::cli
