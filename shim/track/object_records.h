// SPDX-License-Identifier: Apache-2.0
// object and library records: written once a report, before the first record that refers to them. An object's
// id is its identity (objects.h), the same in a fork's child.
#pragma once
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// `runtime`: static, shared or none; empty where the caller cannot tell. Nothing for identity 0.
void announce_object(std::uint32_t identity, std::string_view runtime) noexcept;
/// Every CUDA library that is mapped and not yet in the report.
void announce_libraries() noexcept;

}  // namespace kshim::shim
