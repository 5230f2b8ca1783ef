// SPDX-License-Identifier: Apache-2.0
// Runs code that may crash in a child process with time and memory limits.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::device_code {

struct ProcessLimits {
  std::uint64_t cpu_seconds = 10;
  std::chrono::milliseconds patience{20'000};  ///< until the whole answer is here
  std::uint64_t memory = 0;                    ///< bytes of addresses; 0: as many as there are
};

struct ProcessAnswer {
  enum class End : std::uint8_t {
    whole,    ///< `text` is what the question returned
    crashed,  ///< by `signal`, or with `status` by leaving the process itself: then `signal` is 0
    late,
    not_asked,  ///< there was no room for another process
  };
  End end = End::not_asked;
  int signal = 0;
  std::optional<int> status = {};
  std::string text;
};

/// Runs in the child. `answer`: where its answer goes, for a program that it becomes.
using ProcessQuestion = std::function<std::string(int answer)>;

/// Runs `question` in a child, whose other output goes nowhere, and hands back at most 1 MiB of what it
/// returns, or of what a program wrote to `answer`. An exception ends the child as a signal does.
ProcessAnswer ask_in_own_process(const ProcessQuestion& question, const ProcessLimits& limits);

}  // namespace kshim::device_code
