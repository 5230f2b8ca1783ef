// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace kshim::shim {

std::uint64_t now_nanoseconds() noexcept;  ///< CLOCK_MONOTONIC

}  // namespace kshim::shim
