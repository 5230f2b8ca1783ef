// SPDX-License-Identifier: Apache-2.0
// Libraries that keep the driver's functions in variables of the same names (`cuInit = dlsym(driver,
// "cuInit")`: NVIDIA's old samples, slang-rhi). A preload comes first in the global scope, so the dynamic
// linker binds the library's references to its variables to the shim's functions: the first store would
// fault.
// And libraries that bring a renamed runtime of their own (auditwheel's libcudart-0a1b2c3d.so.12), beside
// another one: the hooked calls of all go to the first runtime, the others to their own, which does not know
// what the first one registered.
#pragma once
#include <string_view>

#include "cuda/real_functions.h"
#include "process/loaded_objects.h"

namespace kshim::shim {

/// Binds these references to the library's own variables, as without the shim: of the libraries that the
/// process started with. In a constructor.
void unshadow_variables_at_start() noexcept;
/// The same for a library that was loaded later. `asking`: an address in the library, which is about to look
/// `name` up. Looks at a library once, at its first question.
/// If it is a runtime, the libraries that are linked to it get its functions where the first runtime's were
/// meant before.
void unshadow_variables(const void* asking, std::string_view name) noexcept;
/// The function of the runtime that the caller's library is linked to, if that is not the one that the
/// wrappers call; from then on the library calls that runtime by itself, unwatched, like a static one.
/// nullptr: it is the same, or the dynamic linker would not have taken its own.
AnyFunction own_runtime_function(Runtime runtime, Hook hook, const void* caller) noexcept;

}  // namespace kshim::shim
