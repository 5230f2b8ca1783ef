// SPDX-License-Identifier: Apache-2.0
// What `kshim run` is told, if there is one, by its socket (KSHIM_RUN_SOCKET): a connection for each word,
// since of datagrams the kernel keeps no more than ten (net.unix.max_dgram_qlen). Never blocks.
#pragma once
#include <string_view>

namespace kshim::shim {

/// "alive PID".
void send_sign_of_life() noexcept;
/// "report PATH". Where the report of this process lies; an empty path where none could be made: it
/// is not always where it was asked for, and it may be gone when the process has ended.
void note_report(std::string_view path) noexcept;
/// "asked VERSION". Somebody asked the driver for its version: `kshim run` is told, once a process. A runtime
/// that is too new for the driver asks nothing else, and a process that initialises nothing has no report.
void note_driver_version(int version) noexcept;

}  // namespace kshim::shim
