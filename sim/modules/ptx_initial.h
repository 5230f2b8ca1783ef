// SPDX-License-Identifier: Apache-2.0
// Initial contents of PTX variables: what a compiler would write into .nv.global.init. PTX ISA 9.0,
// "Initializers" and "Constants".
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "kshim/image/cubin.h"

namespace kshim::sim {

/// `global.name` is a view into `ptx`, at the variable's declaration. Empty: no initializer, all zero.
/// Addresses of other symbols, which only a linker knows, read as zero.
std::vector<std::byte> initial_contents(std::string_view ptx, const image::GlobalInfo& global);

}  // namespace kshim::sim
