// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), for pseudonyms of users: only the owner of the key can
// link one to a user. No heap, no library.
#pragma once
#include <array>
#include <string_view>

namespace kshim::report {

/// 64 lower-case hexadecimal digits.
std::array<char, 64> sha256(std::string_view bytes) noexcept;
std::array<char, 64> hmac_sha256(std::string_view key, std::string_view text) noexcept;

}  // namespace kshim::report
