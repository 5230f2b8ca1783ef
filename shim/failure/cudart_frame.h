// SPDX-License-Identifier: Apache-2.0
// Whether this thread is inside a hooked runtime call. If so, that call reports the driver's error.
#pragma once
#include <cstdint>

namespace kshim::shim {

/// For failures only: walks the stack, unless the last call from there had the same stack. Under the shim's
/// lock. `caller`: the return address of the driver's wrapper. `frame`: an address in the wrapper's frame,
/// always the same one.
bool called_from_cudart(const void* caller, std::uintptr_t frame) noexcept;

}  // namespace kshim::shim
