// SPDX-License-Identifier: Apache-2.0
// A user error or a failed system operation: one line that names the file or option and what to
// do. main prints it as `kshim: error: ...` and exits with the status.
#pragma once
#include <stdexcept>
#include <string>

namespace kshim::core::exit_status {

// Exit statuses of the command, as docs and shell scripts know them.

constexpr int kOk = 0;
constexpr int kFindings = 1;     ///< findings of severity error
constexpr int kMisuse = 2;       ///< wrong arguments
constexpr int kNoInput = 3;      ///< nothing readable in the input
constexpr int kRunFailed = 125;  ///< `kshim run` itself failed, as env(1) and timeout(1) say it
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;

}  // namespace kshim::core::exit_status

namespace kshim::core {

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& text, int status = exit_status::kMisuse)
      : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace kshim::core
