// SPDX-License-Identifier: Apache-2.0
// Libraries that keep the driver's functions in variables of the same names (`cuInit = dlsym(driver,
// "cuInit")`: NVIDIA's old samples, slang-rhi). A preload comes first in the global scope, so the dynamic
// linker binds the library's references to its variables to the shim's functions: the first store would
// fault.
#pragma once
#include <string_view>

#include "process/loaded_objects.h"

namespace kshim::shim {

/// Binds these references to the library's own variables, as without the shim: of the libraries that the
/// process started with. In a constructor.
void unshadow_variables_at_start() noexcept;
/// The same for a library that was loaded later. `asking`: an address in the library, which is about to look
/// `name` up. Looks at a library once, at its first question.
void unshadow_variables(const void* asking, std::string_view name) noexcept;

}  // namespace kshim::shim
