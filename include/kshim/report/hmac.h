// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA-256 (RFC 2104, FIPS 180-4), for pseudonyms of users: only the owner of the key can link one to a
// user. No heap, no library.
#pragma once
#include <array>
#include <string_view>

namespace kshim::report {

/// 64 lower-case hexadecimal digits.
std::array<char, 64> hmac_sha256(std::string_view key, std::string_view text) noexcept;

}  // namespace kshim::report
