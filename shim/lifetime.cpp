// SPDX-License-Identifier: Apache-2.0
#include "lifetime.h"

#include <link.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "bypass.h"
#include "console.h"
#include "guest.h"
#include "hooks.h"
#include "loaded_elf.h"
#include "options.h"
#include "report_file.h"
#include "system_calls.h"

namespace kshim::shim {
namespace {

using ExitFn = void (*)(int);
constexpr std::string_view kExitName = "_exit";
std::atomic<ExitFn> g_next_exit{nullptr};

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
  ExitSearch search;
  dl_iterate_phdr(search_exit, &search);
  g_next_exit.store(reinterpret_cast<ExitFn>(search.found));
  if (!options().run_socket.empty()) send_sign_of_life();
}

[[gnu::destructor]] void end() {
  announce_bypasses();
  end_report();
}

void tell_run(std::string_view what, std::uint64_t number) noexcept {
  const ErrnoKeeper keeper;
  const std::string_view path = options().run_socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return;
  path.copy(address.sun_path, path.size());
  const int fd = raw::datagram_socket();
  if (fd < 0) return;
  Text<48> text;
  text << what << " " << number << "\n";
  raw::send_to(fd, text.view().data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
  raw::close_file(fd);
}

}  // namespace

void send_sign_of_life() noexcept { tell_run("alive", std::uint64_t{raw::process()}); }

void note_driver_version(int version) noexcept {
  static std::atomic<std::uint32_t> g_told{0};  // a fork's child tells for itself
  if (!options().enabled || options().run_socket.empty() || version <= 0) return;
  const std::uint32_t process = process_id();
  if (g_told.exchange(process, std::memory_order_relaxed) != process)
    tell_run("asked", static_cast<std::uint64_t>(version));
}

}  // namespace kshim::shim

// _exit is how children of fork end (Python's os._exit, multiprocessing, DataLoader workers), past every
// destructor.
extern "C" {
[[gnu::visibility("default")]] void _exit(int status) {
  kshim::shim::end_report();
  if (const auto next = kshim::shim::g_next_exit.load(std::memory_order_relaxed); next != nullptr)
    next(status);
  for (;;) syscall(SYS_exit_group, status);
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept { _exit(status); }
}
