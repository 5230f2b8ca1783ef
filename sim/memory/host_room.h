// SPDX-License-Identifier: Apache-2.0
// Simulated memory is the host's, taken as it is written. A kernel that did not run leaves sizes behind that
// mean nothing, and a program that believes them fills the host: what would not fit is refused instead.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/driver_api.h"

namespace kshim::sim {

/// 2 where writing [at, at + size) needs more memory than the host, or the control group, has left; stderr
/// says so once. Looks at large ranges alone.
CUresult check_host_room(std::uintptr_t at, std::size_t size) noexcept;
/// Says once that an allocation is larger than the whole device, and what such a size may be.
void say_beyond_device(std::size_t size, std::uint64_t device_bytes) noexcept;

}  // namespace kshim::sim
