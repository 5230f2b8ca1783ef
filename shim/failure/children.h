// SPDX-License-Identifier: Apache-2.0
// child records: a child process ended with a status other than 0 or by a signal, and which Python line had
// waited for it. A compiler that failed writes its own report (track/compiler_process.h) and does not know
// that line; the command puts the two together.
#pragma once
#include <cstddef>
#include <cstdint>

#include "process/python/frames.h"
#include "report/report_file.h"

namespace kshim::shim {

/// Lies in zeroed memory. Under the shim's lock.
class Children {
 public:
  /// `status`: as waitpid gives it.
  void note(Report& report, std::uint64_t pid, int status) noexcept;

 private:
  static constexpr std::size_t kMax = 64;  ///< of a report
  std::uint32_t report_;
  std::size_t count_;
  PythonStack python_;
  PythonStack python_main_;
};

}  // namespace kshim::shim
