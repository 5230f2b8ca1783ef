// SPDX-License-Identifier: Apache-2.0
// A copy of the environment. Other threads of the host may change the environment meanwhile (setenv).
#pragma once
#include <span>
#include <string_view>

#include "kshim/report/writer.h"

namespace kshim::shim {

/// About 32 KiB: keep it off the stack. Holds the variables of environment.def that are set, TMPDIR, and the
/// user.
class EnvironmentCopy {
 public:
  void capture() noexcept;
  std::span<const report::EnvRow> rows() const noexcept { return {rows_, count_}; }
  /// A variable of environment.def; no data() where it is not set.
  std::string_view find(std::string_view name) const noexcept;
  std::string_view temporary_folder() const noexcept { return temporary_folder_; }  ///< TMPDIR, else /tmp
  const report::Person& user() const noexcept { return user_; }  ///< by HOME, and USER, else LOGNAME

 private:
  void add_variable(std::string_view entry) noexcept;
  std::string_view store(std::string_view text) noexcept;

  static constexpr std::size_t kMaxRows = 128;
  report::EnvRow rows_[kMaxRows] = {};
  std::size_t count_ = 0;
  char text_[24576] = {};
  std::size_t text_used_ = 0;
  std::string_view temporary_folder_;
  report::Person user_;
};

/// A variable that is on where it has the value 1.
struct Switch {
  std::string_view name;
  bool on = false;
  bool known = false;
};
/// What they are now.
void find_switches(std::span<Switch> switches) noexcept;

}  // namespace kshim::shim
