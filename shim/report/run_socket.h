// SPDX-License-Identifier: Apache-2.0
// Messages to `kshim run` through its socket (KSHIM_RUN_SOCKET), if there is one. One connection for each
// message: the kernel queues no more than ten datagrams (net.unix.max_dgram_qlen). Never blocks. A process
// that may open neither a socket nor a report makes an empty folder: the socket's path, a point and its
// process id.
#pragma once
#include <string_view>

namespace kshim::shim {

/// "alive PID".
void send_sign_of_life() noexcept;
/// "report PATH": where the report of this process is, or an empty path if none could be made. It may be in
/// another place than the options say.
void note_report(std::string_view path) noexcept;
/// "asked VERSION", once a process: the program has asked the driver for its version. A runtime that is too
/// new for the driver makes no other call, and a process that does not initialize the driver has no report.
void note_driver_version(int version) noexcept;

}  // namespace kshim::shim
