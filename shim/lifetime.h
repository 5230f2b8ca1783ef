// SPDX-License-Identifier: Apache-2.0
// Where the shim begins and ends: the library's constructor (options, stderr, the sign of life for `kshim
// run`), its destructor and _exit (the end record). No other part of the shim has constructors or
// destructors.
#pragma once

namespace kshim::shim {

/// Sends "alive PID" to the datagram socket of `kshim run`, if there is one. Never blocks.
void send_sign_of_life() noexcept;

}  // namespace kshim::shim
