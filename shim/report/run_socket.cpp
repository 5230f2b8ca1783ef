// SPDX-License-Identifier: Apache-2.0
#include "report/run_socket.h"

#include <sys/un.h>

#include <atomic>

#include "guest/options.h"
#include "guest/own_file.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"

namespace kshim::shim {
namespace {

/// False where there is no descriptor for a socket.
bool tell_run(std::string_view text) noexcept {
  if (!options().enabled || options().run_socket.empty()) return true;
  const std::string_view path = options().run_socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return true;
  path.copy(address.sun_path, path.size());
  const OwnFile socket(raw::packet_socket());
  if (!socket) return false;
  if (raw::connect_to(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    raw::send_to(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
  return true;
}

/// A folder beside the socket needs no descriptor.
void leave_sign() noexcept {
  PathText path;
  path << options().run_socket << "." << std::uint64_t{raw::process()};
  raw::make_folder_at(AT_FDCWD, path.c_str(), 0700);
}

void tell_run(std::string_view what, std::uint64_t number) noexcept {
  Text<48> text;
  text << what << " " << number << "\n";
  tell_run(text.view());
}

}  // namespace

void send_sign_of_life() noexcept {
  if (!options().run_socket.empty()) tell_run("alive", std::uint64_t{raw::process()});
}

void note_report(std::string_view path) noexcept {
  PathText text;
  text << "report " << path << "\n";
  if (!tell_run(text.view()) && path.empty()) leave_sign();
}

void note_driver_version(int version) noexcept {
  static std::atomic<std::uint32_t> g_told{0};  // a child of fork sends its own
  if (version <= 0) return;
  const std::uint32_t process = process_generation();
  if (g_told.exchange(process, std::memory_order_relaxed) != process)
    tell_run("asked", static_cast<std::uint64_t>(version));
}

}  // namespace kshim::shim
