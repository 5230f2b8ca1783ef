// SPDX-License-Identifier: Apache-2.0
// Parses log lines and collects facts. Memory does not grow with the log.
#pragma once

#include "analyzer/input/log/clues.h"

namespace kshim::input {

class LogParser {
 public:
  /// `about_cuda`: what follows is known to be about CUDA, as what somebody asks is.
  explicit LogParser(bool about_cuda = false);
  ~LogParser();
  LogParser(const LogParser&) = delete;
  LogParser& operator=(const LogParser&) = delete;

  /// One line without its newline, of any bytes.
  void line(std::string_view text);
  LogFacts take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Without terminal control sequences and control characters; tabs become spaces.
std::string plain_line(std::string_view text);

}  // namespace kshim::input
