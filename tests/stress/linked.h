// SPDX-License-Identifier: Apache-2.0
// What the client asks of the shim's sources that are linked into it. Apart from <cuda.h>, whose macros
// rename functions.
#pragma once
#include <cstddef>

namespace stress {

/// What the assembly in front of libc's dlsym does.
void* look_up(void* handle, const char* name, const void* caller);
/// What the runtime's registration tells the shim: a fatbin with kernels that comes and goes.
void register_and_forget(const void* fatbin, const char* kernel);

}  // namespace stress
