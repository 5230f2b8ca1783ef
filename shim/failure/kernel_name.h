// SPDX-License-Identifier: Apache-2.0
// The part of a mangled kernel name that people recognise. The command demangles in full; a guest has no heap
// for that.
#pragma once
#include <string_view>

#include "guest/text_buffer.h"

namespace kshim::shim {

/// `_ZN2at6native6kernelIfEEvT_` to `at::native::kernel<...>`, `_Z5saxpyfPf` to `saxpy`. What is not
/// understood stays as it is.
Text<256> short_kernel_name(std::string_view mangled) noexcept;

}  // namespace kshim::shim
