// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends: the library's constructor (options, stderr, the sign of life for `kshim
// run`), its destructor and _exit (the end record). Besides, program.cpp notes what is mapped at the start;
// no other part of the shim has constructors or destructors.
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "cuda/hooks.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/syscalls.h"
#include "process/loaded_elf.h"
#include "report/report_file.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"
#include "track/bypass.h"

namespace kshim::shim {
namespace {

using ExitFn = void (*)(int);
constexpr std::string_view kExitName = "_exit";
std::atomic<ExitFn> g_next_exit{nullptr};
std::atomic<std::uint32_t> g_process{0};  ///< whose constructors ran

struct ExitSearch {
  bool after_shim = false;
  void* found = nullptr;
};

// The next _exit after ours in link order: libc's, or that of another tool that wants to know.
int search_exit(dl_phdr_info* info, std::size_t, void* context) {
  auto& search = *static_cast<ExitSearch*>(context);
  const LoadedElf elf(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
  if (elf.contains(reinterpret_cast<std::uintptr_t>(&g_next_exit))) {
    search.after_shim = true;
  } else if (search.after_shim) {
    search.found = elf.find_symbol(kExitName, gnu_hash(kExitName));
  }
  return search.found != nullptr ? 1 : 0;
}

[[gnu::constructor]] void start() {
  const ErrnoKeeper keeper;
  note_stderr();
  if (!options().enabled) return;
  g_process.store(raw::process());
  ExitSearch search;
  dl_iterate_phdr(search_exit, &search);
  g_next_exit.store(reinterpret_cast<ExitFn>(search.found));
  send_sign_of_life();
}

/// fork copies the lock of dl_iterate_phdr as it was: if another thread of the parent was in there, that lock
/// is never released in the child. So a child looks at nothing that is mapped, and one without a report does
/// nothing at all.
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
