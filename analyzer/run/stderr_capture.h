// SPDX-License-Identifier: Apache-2.0
// The last 256 KB that CMD and its children write to stderr, for the analysis. What arrives there, and in
// which order with stdout, stays.
//
//   stderr is           how it is heard
//   a regular file      CMD has the file itself; what was added is read at the end
//   a pipe, a stream    CMD gets a pipe; a process of our own copies it to where stderr leads, until nobody
//   has socket, /dev/null   the pipe any more: it outlives this process, and so nobody meets a closed pipe a
//   terminal, stdout  the same with a pseudo-terminal is none a terminal, as      CMD gets a terminal of its
//   own (terminal_relay.h) stdout is anything else       not at all
#pragma once
#include "analyzer/run/tail.h"
#include "analyzer/run/terminal_relay.h"
#include "kshim/files/open_file.h"

namespace kshim::run {

class StderrCapture {
 public:
  /// `wanted`: false leaves stderr alone.
  explicit StderrCapture(bool wanted);
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;

  /// As fork(2): `program`, which does not return, runs in the child, with its streams in place.
  pid_t start(const std::function<void()>& program);
  /// The process of our own that stands beside CMD, or above it; 0 where there is none.
  pid_t helper() const noexcept { return relay_ ? relay_->monitor() : copier_; }
  bool listens() const noexcept { return file_begin_ || helper() != 0; }
  /// Of a terminal of CMD's own.
  TerminalRelay* relay() noexcept { return relay_.get(); }
  /// Moves what CMD's own terminal has.
  void serve() { relay_->serve(tail_); }
  /// When CMD has ended. Waits until what it wrote has arrived.
  std::string words();

 private:
  void copy_from(files::Descriptor source, files::Descriptor for_cmd);
  bool use_pipe();
  bool use_terminal();

  Tail tail_;
  std::unique_ptr<TerminalRelay> relay_;
  std::optional<std::uint64_t> file_begin_;  ///< of a regular file: where CMD began to write
  files::Descriptor for_cmd_;                ///< what CMD gets as its stderr
  bool stdout_too_ = false;
  files::Descriptor copier_words_;  ///< asks the copying process to finish what is there
  pid_t copier_ = 0;
};

}  // namespace kshim::run
