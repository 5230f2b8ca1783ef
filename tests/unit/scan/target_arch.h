// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "kshim/image/arch.h"

namespace kshim::test {

inline image::Arch arch(std::string_view text) { return image::parse_arch(text).value_or(image::Arch{}); }

}  // namespace kshim::test
