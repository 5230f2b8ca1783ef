// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends. It begins in the library's constructor (options, stderr, the message that
// announces the process for `kshim run`). It ends in one of two ways: `end` is the library's destructor, for
// exit() and a return from main; `end_now` is for _exit, which a signal handler may call. A compiler's
// process has a report only where it fails, and a destructor does not receive the exit status: there
// `end_compiler` is a function of on_exit(3), which runs after all destructors. link_map.cpp has a
// constructor that notes what is mapped at the start, and process_generation.cpp one that counts forks; no
// other part of the shim has constructors or destructors.
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "core/observer.h"
#include "core/state.h"
#include "cuda/driver_log.h"
#include "cuda/real_functions.h"
#include "cuda/rebind.h"
#include "exports/next_functions.h"
#include "exports/symbol_lookup.h"
#include "guest/clock.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/process_generation.h"
#include "guest/scratch_stack.h"
#include "guest/syscalls.h"
#include "process/link_map.h"
#include "process/stack/native.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"
#include "track/bypass.h"
#include "track/compiler_process.h"
#include "track/coverage.h"

namespace kshim::shim {

std::atomic<CloseFn> g_next_dlclose{nullptr};

[[gnu::noinline, gnu::cold]] void* find_next(std::string_view name) noexcept {
  NextFunction found[] = {{name}};
  on_new_stack([&] { find_after_shim(found); });
  return found[0].address;
}

namespace {

using ExitFn = void (*)(int);
// A library may define one of the two and call the other.
std::atomic<ExitFn> g_next_exit{nullptr};    ///< _exit
std::atomic<ExitFn> g_next_c_exit{nullptr};  ///< _Exit
std::atomic<std::uint32_t> g_process{0};     ///< the process that ran the constructor
std::atomic<std::uint32_t> g_first{0};       ///< its process_generation()
/// exit() accepts an int, but the parent sees only its low 8 bits.
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
  SlowPath().run([status](State& state) { write_compiler(state, status); });
}

/// By address: a program may define a function of that name. musl has none.
void watch_compiler() noexcept {
  using OnExit = int (*)(void (*)(int, void*), void*);
  look_at_program();
  if (!is_compiler_process()) return;
  keep_silent();
  NextFunction on_exit[] = {{"on_exit"}};
  find_after_shim_at_start(on_exit);
  if (on_exit[0].address != nullptr) reinterpret_cast<OnExit>(on_exit[0].address)(end_compiler, nullptr);
}

/// The next ones after ours in link order: libc's, or those of another tool. At the start this needs no
/// system call, which a program may forbid to itself later.
void find_next_functions() noexcept {
  NextFunction next[] = {{"_exit"},
                         {"_Exit"},
                         {"dlsym"},
                         {"dlvsym"},
                         {"dlclose"},
                         {"__errno_location"},
                         {.name = "clock_gettime", .version = "GLIBC_2.17", .libcs = true}};
  find_after_shim_at_start(next);
  g_next_exit.store(reinterpret_cast<ExitFn>(next[0].address));
  g_next_c_exit.store(reinterpret_cast<ExitFn>(next[1].address));
  g_next_dlclose.store(reinterpret_cast<CloseFn>(next[4].address));  // null if libdl is not mapped yet
  g_errno_location.store(reinterpret_cast<ErrnoFn>(next[5].address), std::memory_order_relaxed);
  g_libcs_clock.store(reinterpret_cast<ClockFn>(next[6].address), std::memory_order_relaxed);
  if (next[2].address != nullptr) kshim_real_dlsym = next[2].address;
  if (next[3].address != nullptr) kshim_real_dlvsym = next[3].address;
}

[[gnu::constructor]] void start() {
  find_next_functions();
  unshadow_variables_at_start();
  call_in_child(forget_closing_threads);
  g_first.store(process_generation());
  // With KSHIM_DISABLE=1 no system call: a library's constructor may have forbidden them before.
  if (!options().enabled) return;
  if (options().coverage) count_launches();
  remember_stderr();
  g_process.store(raw::process());
  watch_compiler();
  send_sign_of_life();
}

/// `whole`: with the libraries that find_bypasses() saw last.
void end_report(State& state, bool whole) noexcept {
  if (current_report() == 0) return;
  if (whole) {
    state.objects.announce_known_libraries(state.report);
  }
  write_launch_counts(state.locked, state.report);
  state.failures.flush_repeats(state.report);
  state.report.end();
}

bool has_report() noexcept { return is_state_mapped() && current_report() != 0; }

/// For exit() and a return from main. A process without CUDA makes no system call, because a
/// seccomp filter of the host may kill it for one. A child of fork does not read the list of loaded
/// files; one without a report does nothing.
[[gnu::destructor]] void end() {
  if (!options().enabled || has_parents_report()) return;
  if (!has_report() && (process_generation() != g_first.load() || !may_be_bypassed())) return;
  const bool forked = g_process.load() != raw::process();
  if (forked && !has_report()) return;
  if (!forked && options().driver_log) {
    bool in_handler = true;
    SlowPath().run([&](State&) { in_handler = is_in_signal_handler(); });
    stop_listening(in_handler);
  }
  const SlowPath path;
  if (!path) {  // a handler that has interrupted the shim calls exit()
    Report::end_immediately();
    return;
  }
  bool bypassed = false;
  if (!forked) on_new_stack([&] { bypassed = find_bypasses(has_report()); });
  if (bypassed || has_report()) {
    const bool written = path.run([&](State& state) {
      if (bypassed) write_bypasses(state.report, state.objects);
      end_report(state, !forked);
    });
    if (!written) Report::end_immediately();
  }
}

/// For _exit. Waits for no lock and enumerates nothing: in a signal handler, any thread may be in any state.
void end_now(int status) noexcept {
  if (options().enabled && is_failing_compiler(status)) {
    if (SlowPath().try_run([status](State& state) { write_compiler(state, status); })) return;
  }
  if (!options().enabled || !is_state_mapped() || current_report() == 0) return;
  // A vfork's child that could not exec ends itself, not its parent.
  if (!is_process_of_report()) return;
  const SlowPath path;
  if (path.try_run([](State& state) { end_report(state, false); })) return;
  Report::end_immediately();
}

[[noreturn]] void end_by(const std::atomic<ExitFn>& next, int status) noexcept {
  end_now(status);
  if (const ExitFn real = next.load(std::memory_order_relaxed); real != nullptr) real(status);
  for (;;) raw::call(SYS_exit_group, status);
}

}  // namespace

}  // namespace kshim::shim

// Children of fork end by _exit, without destructors (Python's os._exit, multiprocessing, DataLoader
// workers).
extern "C" {
[[gnu::visibility("default")]] void _exit(int status) {
  kshim::shim::end_by(kshim::shim::g_next_exit, status);
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept {
  kshim::shim::end_by(kshim::shim::g_next_c_exit, status);
}
}
