// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends: the library's constructor (options, stderr, the sign of life for `kshim
// run`), its destructor and _exit (the end record). Besides, link_map.cpp notes what is mapped at the start;
// no other part of the shim has constructors or destructors.
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "cuda/hooks.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/syscalls.h"
#include "process/link_map.h"
#include "report/report_file.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"
#include "track/bypass.h"

namespace kshim::shim {
namespace {

using ExitFn = void (*)(int);
std::atomic<ExitFn> g_next_exit{nullptr};
std::atomic<std::uint32_t> g_process{0};  ///< whose constructors ran

[[gnu::constructor]] void start() {
  const ErrnoKeeper keeper;
  note_stderr();
  if (!options().enabled) return;
  g_process.store(raw::process());
  // The next one after ours in link order: libc's, or that of another tool.
  g_next_exit.store(reinterpret_cast<ExitFn>(find_after_shim("_exit")));
  send_sign_of_life();
}

/// A fork's child, which has the threads of its parent no more, looks at nothing that is mapped, and one
/// without a report does nothing at all.
[[gnu::destructor]] void end() {
  if (!options().enabled) return;
  const bool forked = g_process.load() != raw::process();
  if (!forked) announce_bypasses();
  end_report(forked ? Ending::immediate : Ending::normal);
}

}  // namespace

}  // namespace kshim::shim

// _exit is how children of fork end (Python's os._exit, multiprocessing, DataLoader workers), past every
// destructor.
extern "C" {
[[gnu::visibility("default")]] void _exit(int status) {
  kshim::shim::end_report(kshim::shim::Ending::immediate);
  if (const auto next = kshim::shim::g_next_exit.load(std::memory_order_relaxed); next != nullptr)
    next(status);
  for (;;) syscall(SYS_exit_group, status);
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept { _exit(status); }
}
