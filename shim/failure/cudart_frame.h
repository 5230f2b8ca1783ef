// SPDX-License-Identifier: Apache-2.0
// Whether this thread is inside a runtime call that the shim watches: then what the driver refuses is that
// call's to tell.
#pragma once

namespace kshim::shim {

/// Walks the stack: for failures only.
bool inside_runtime_call() noexcept;

}  // namespace kshim::shim
