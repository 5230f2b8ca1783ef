// SPDX-License-Identifier: Apache-2.0
// What a person did wrong or what their machine refused: one line that names the file or option and what to
// do. main prints it as `kshim: error: ...` and exits with the status.
#pragma once
#include <stdexcept>
#include <string>

#include "analyzer/core/exit_status.h"

namespace kshim::cli {

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& text, int status = exit_status::kMisuse)
      : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace kshim::cli
