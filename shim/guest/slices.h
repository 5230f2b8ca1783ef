// SPDX-License-Identifier: Apache-2.0
// string_view::substr without the exception, which would link a function of libstdc++ into the shim.
#pragma once
#include <algorithm>
#include <string_view>

namespace kshim::shim {

/// At most `size` characters from `start`; empty past the end.
constexpr std::string_view part_of(std::string_view text, std::size_t start,
                                   std::size_t size = std::string_view::npos) noexcept {
  start = std::min(start, text.size());
  return {text.data() + start, std::min(size, text.size() - start)};
}

}  // namespace kshim::shim
