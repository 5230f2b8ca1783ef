// SPDX-License-Identifier: Apache-2.0
// Whether this thread is inside a hooked runtime call. If so, that call reports the driver's error.
#pragma once

namespace kshim::shim {

/// Walks the stack: for failures only.
bool called_from_cudart() noexcept;

}  // namespace kshim::shim
