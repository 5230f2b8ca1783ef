// SPDX-License-Identifier: Apache-2.0
#include "failure/children.h"

#include <sys/wait.h>

#include <optional>

#include "guest/options.h"

namespace kshim::shim {

void Children::note(Report& report, std::uint64_t pid, int status) noexcept {
  using report::Field;
  if (const std::uint32_t number = report.begin(); report_ != number) {
    report_ = number;
    count_ = 0;
  }
  if (count_ == kMax) return;
  ++count_;
  python_.clear();
  python_main_.clear();
  if (options().python_stacks) {
    python_.capture_this_thread();
    python_main_.capture_main_thread();
  }
  report.write<report::RecordType::child>([&](auto& record) {
    record.template add<Field::child_pid>(pid);
    const std::optional<std::uint64_t> ended =
        WIFEXITED(status) ? std::optional(static_cast<std::uint64_t>(WEXITSTATUS(status))) : std::nullopt;
    const std::optional<std::uint64_t> signal =
        WIFSIGNALED(status) ? std::optional(static_cast<std::uint64_t>(WTERMSIG(status))) : std::nullopt;
    record.template add<Field::child_status>(ended);
    record.template add<Field::child_signal>(signal);
    if (python_.rows().empty())
      record.template null<Field::child_python>();
    else
      record.template add<Field::child_python>(python_.rows());
    if (python_main_.rows().empty())
      record.template null<Field::child_python_main>();
    else
      record.template add<Field::child_python_main>(python_main_.rows());
  });
}

}  // namespace kshim::shim
