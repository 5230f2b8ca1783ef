// SPDX-License-Identifier: Apache-2.0
// Starts CMD and stays beside it: signals, job control, the time limit. It reads no file, as a file system
// may not answer: the watch does, in a thread of its own.
#pragma once
#include <sys/types.h>

#include "analyzer/run/environment.h"

namespace kshim::run {

struct ChildSpec {
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< argv[0] included
  std::optional<std::chrono::milliseconds> time_limit;
  bool captures = true;  ///< what it writes to stderr
};

struct ChildOutcome {
  pid_t pid = 0;
  std::optional<int> exit_status;  ///< one of these two
  std::optional<int> term_signal;
  bool timed_out = false;
  bool heard = false;  ///< whether its stderr could be listened to
  std::string words;   ///< the last that it and its children wrote to stderr
};

/// Runs to CMD's end. Throws UserError with 126 or 127 when the kernel refuses to execute it.
ChildOutcome run_child(const ChildSpec& spec, Environment environment);

}  // namespace kshim::run
