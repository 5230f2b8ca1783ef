// SPDX-License-Identifier: Apache-2.0
// waitpid: where a program learns that a compiler, which it had started, failed. Python's subprocess, XLA and
// ninja call it. It is a cancellation point and may be called in a signal handler, so the real function does
// all of the work; what follows comes after it, for a child that ended with a status other than 0 or by a
// signal in a process that has a report, and waits for nothing.
#include <sys/wait.h>

#include "exports/next_functions.h"
#include "failure/state.h"
#include "guest/options.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

[[gnu::noinline, gnu::cold]] void note_child(pid_t child, int status) noexcept {
  if (!options().enabled || current_report() == 0) return;
  if (!is_process_of_report()) return;  // a vfork's child
  // Where another thread is in the shim, the report does without.
  (void)SlowPath().try_run(
      [&](State& state) { state.children.note(state.report, static_cast<std::uint64_t>(child), status); });
}

}  // namespace
}  // namespace kshim::shim

// The cancellation of the real function unwinds this frame: it has nothing to clean up.
extern "C" [[gnu::visibility("default")]] pid_t waitpid(pid_t pid, int* status, int options) {
  using namespace kshim::shim;
  WaitFn next = g_next_waitpid.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<WaitFn>(find_next("waitpid"));
    if (next == nullptr) return static_cast<pid_t>(raw::call(SYS_wait4, pid, status, options, nullptr));
    g_next_waitpid.store(next, std::memory_order_relaxed);
  }
  const pid_t child = next(pid, status, options);
  if (child > 0 && status != nullptr && *status != 0 && (WIFEXITED(*status) || WIFSIGNALED(*status)))
    note_child(child, *status);
  return child;
}
