// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256 (RFC 2104, FIPS 180-4): a pseudonym that only who has the key can link to a user. No heap, no
// library.
#pragma once
#include <array>
#include <string_view>

namespace kshim::report {

/// 64 lower-case hexadecimal digits.
std::array<char, 64> hmac_sha256(std::string_view key, std::string_view text) noexcept;

}  // namespace kshim::report
