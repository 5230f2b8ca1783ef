// SPDX-License-Identifier: Apache-2.0
// Extracts the readable part of a mangled kernel name, without a heap. The command demangles in full.
#pragma once
#include <string_view>

#include "guest/text_buffer.h"

namespace kshim::shim {

/// `_ZN2at6native6kernelIfEEvT_` to `at::native::kernel<...>`, `_Z5saxpyfPf` to `saxpy`. Other names
/// stay unchanged.
Text<256> short_kernel_name(std::string_view mangled) noexcept;

}  // namespace kshim::shim
