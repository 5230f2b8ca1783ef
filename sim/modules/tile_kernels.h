// SPDX-License-Identifier: Apache-2.0
// The kernels of Tile IR bytecode, by name.
#pragma once
#include <string_view>
#include <vector>

#include "kshim/base/bytes.h"

namespace kshim::sim {

/// Views into `bytecode`. False: it is damaged, or has what this reader does not know.
bool tile_kernels(Bytes bytecode, std::vector<std::string_view>& names);

}  // namespace kshim::sim
