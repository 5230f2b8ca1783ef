// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends: the library's constructor (options, stderr, the sign of life for `kshim
// run`), its destructor and _exit (the end record). No other part of the shim has constructors or
// destructors.
#pragma once

namespace kshim::shim {

/// Sends "alive PID" to the datagram socket of `kshim run`, if there is one. Never blocks.
void send_sign_of_life() noexcept;
/// Somebody asked the driver for its version: `kshim run` is told, once a process. A runtime that is too new
/// for the driver asks nothing else, and a process that initialises nothing has no report.
void note_driver_version(int version) noexcept;

}  // namespace kshim::shim
