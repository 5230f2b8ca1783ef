// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends. It begins in the library's constructor (options, stderr, the sign of life
// for `kshim run`). It ends in one of two ways: `end` is the library's destructor, for exit() and a return
// from main; `end_now` is for _exit, which a signal handler may call. A compiler's process has a report only
// where it fails, and a destructor does not hear of the status: there `end_compiler` is a function of
// on_exit(3), which runs after all destructors. link_map.cpp has a constructor that notes what is mapped at
// the start; no other part of the shim has constructors or destructors.
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "failure/state.h"
#include "guest/options.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"
#include "process/link_map.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"
#include "track/bypass.h"
#include "track/compiler_process.h"
#include "track/coverage.h"

namespace kshim::shim {
namespace {

using ExitFn = void (*)(int);
std::atomic<ExitFn> g_next_exit{nullptr};
std::atomic<std::uint32_t> g_process{0};  ///< the process that ran the constructor

/// exit() takes more than a parent sees of it.
std::uint64_t seen_status(int status) noexcept { return static_cast<unsigned>(status) & 0xFFU; }

/// Whether this is a compiler that fails, and not a child that it forked.
bool is_failing_compiler(int status) noexcept {
  return is_compiler_process() && seen_status(status) != 0 && g_process.load() == raw::process() &&
         current_report() == 0;
}

void write_compiler(State& state, int status) noexcept {
  if (state.report.begin_at_failure() == 0) return;
  state.compiler.write(state.report, seen_status(status));
  state.report.end();
}

void end_compiler(int status, void* /*argument*/) {
  if (!is_failing_compiler(status)) return;
  const SlowPath path;
  if (path) path.run([status](State& state) { write_compiler(state, status); });
}

/// By address: a program may define a function of that name. musl has none.
void watch_compiler() noexcept {
  using OnExit = int (*)(void (*)(int, void*), void*);
  look_at_program();
  if (!is_compiler_process()) return;
  if (const auto on_exit = reinterpret_cast<OnExit>(find_after_shim("on_exit")); on_exit != nullptr)
    on_exit(end_compiler, nullptr);
}

[[gnu::constructor]] void start() {
  const ErrnoKeeper keeper;
  remember_stderr();
  if (!options().enabled) return;
  g_process.store(raw::process());
  // The next one after ours in link order: libc's, or that of another tool.
  g_next_exit.store(reinterpret_cast<ExitFn>(find_after_shim("_exit")));
  watch_compiler();
  send_sign_of_life();
}

/// `whole`: also reads the list of loaded files.
void end_report(State& state, bool whole) noexcept {
  if (current_report() == 0) return;
  if (whole) {
    state.objects.announce_all_libraries(state.report);
    state.target_scan.run(state.gap_scene(), state.gaps);
  }
  write_launch_counts(state.report);
  state.failures.flush_repeats(state.report);
  state.report.end();
}

/// For exit() and a return from main. A child of fork does not read the list of loaded files; one without a
/// report does nothing.
[[gnu::destructor]] void end() {
  if (!options().enabled) return;
  const bool forked = g_process.load() != raw::process();
  if (forked && (!is_state_mapped() || current_report() == 0)) return;
  const SlowPath path;
  if (!path) return;
  const bool bypassed = !forked && find_bypasses();
  if (!bypassed && (!is_state_mapped() || current_report() == 0)) return;
  path.run([&](State& state) {
    if (bypassed) write_bypasses(state.report, state.objects);
    end_report(state, !forked);
  });
}

/// For _exit. Waits for no lock and enumerates nothing: in a signal handler, any thread may be in any state.
void end_now(int status) noexcept {
  if (options().enabled && is_failing_compiler(status)) {
    const SlowPath path;
    if (path && path.try_run([status](State& state) { write_compiler(state, status); })) return;
  }
  if (!options().enabled || !is_state_mapped() || current_report() == 0) return;
  // A vfork's child that could not exec ends itself, not its parent.
  if (process_id() != raw::process()) return;
  const SlowPath path;
  if (path && path.try_run([](State& state) { end_report(state, false); })) return;
  Report::end_immediately();
}

}  // namespace

}  // namespace kshim::shim

// Children of fork end by _exit, without destructors (Python's os._exit, multiprocessing, DataLoader
// workers).
extern "C" {
[[gnu::visibility("default")]] void _exit(int status) {
  kshim::shim::end_now(status);
  if (const auto next = kshim::shim::g_next_exit.load(std::memory_order_relaxed); next != nullptr)
    next(status);
  for (;;) kshim::shim::raw::call(SYS_exit_group, status);
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept { _exit(status); }
}
