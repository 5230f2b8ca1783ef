// SPDX-License-Identifier: Apache-2.0
// Messages to `kshim run` through its socket (KSHIM_RUN_SOCKET), if there is one. One connection for each
// message: the kernel queues no more than ten datagrams (net.unix.max_dgram_qlen). Never blocks.
#pragma once
#include <string_view>

namespace kshim::shim {

/// "alive PID".
void send_sign_of_life() noexcept;
/// "report PATH". Where the report of this process lies; an empty path where none could be made: it
/// is not always where it was asked for, and it may be gone when the process has ended.
void note_report(std::string_view path) noexcept;
/// "asked VERSION", once a process, when the program has asked the driver for its version. A runtime
/// that is too new for the driver asks nothing else, and a process that initialises nothing has no report.
void note_driver_version(int version) noexcept;

}  // namespace kshim::shim
