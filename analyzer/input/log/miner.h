// SPDX-License-Identifier: Apache-2.0
// Parses log lines and collects facts. Memory does not grow with the log.
#pragma once

#include "analyzer/input/log/clues.h"

namespace kshim::explain {

class Miner {
 public:
  Miner();
  ~Miner();
  Miner(const Miner&) = delete;
  Miner& operator=(const Miner&) = delete;

  /// One line without its newline, of any bytes.
  void line(std::string_view text);
  Clues take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Without terminal control sequences and control characters; tabs become spaces.
std::string plain_line(std::string_view text);

}  // namespace kshim::explain
