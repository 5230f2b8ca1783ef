// SPDX-License-Identifier: Apache-2.0
// Mutates reports record by record: bytes alone nearly always break the JSON of a line, and are skipped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace kshim::fuzz {

/// Another report, of at most `most` bytes.
std::string mutate_report(std::string_view report, std::size_t most, std::mt19937& random);

}  // namespace kshim::fuzz
