// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/hmac.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace kshim::report {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kDigest = 32;
using Digest = std::array<std::uint8_t, kDigest>;

constexpr std::uint32_t kRounds[] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void add(std::string_view bytes) noexcept {
    const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const std::uint8_t* const end = at + bytes.size();
    for (; size_ % kBlock == 0 && end - at >= std::ptrdiff_t{kBlock}; at += kBlock, size_ += kBlock) take(at);
    for (; at != end; ++at) add(*at);
  }
  void add(std::uint8_t byte) noexcept {
    block_[size_++ % kBlock] = byte;
    if (size_ % kBlock == 0) take(block_);
  }
  Digest finish() noexcept {
    const std::uint64_t bits = size_ * 8;
    add(0x80);
    while (size_ % kBlock != kBlock - 8) add(0);
    for (unsigned shift = 64; shift != 0; shift -= 8) add(static_cast<std::uint8_t>(bits >> (shift - 8)));
    Digest out{};
    for (std::size_t i = 0; i < kDigest; ++i)
      out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  void take(const std::uint8_t* block) noexcept {
    std::uint32_t words[64];
    for (std::size_t i = 0; i < 16; ++i) {
      words[i] = 0;
      for (std::size_t byte = 0; byte < 4; ++byte) words[i] = words[i] << 8U | block[4 * i + byte];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = words[i - 15];
      const std::uint32_t b = words[i - 2];
      words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U) + words[i - 7] +
                 (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U);
    }
    std::uint32_t s[8];
    for (std::size_t i = 0; i < 8; ++i) s[i] = state_[i];
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t sum = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                                ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRounds[i] + words[i];
      const std::uint32_t other = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                                  ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      for (std::size_t to = 7; to != 0; --to) s[to] = s[to - 1];
      s[4] += sum;
      s[0] = sum + other;
    }
    for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
  }

  std::uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint8_t block_[kBlock] = {};
  std::uint64_t size_ = 0;
};

std::array<char, 64> hex_of(const Digest& digest) noexcept {
  std::array<char, 64> hex{};
  std::size_t at = 0;
  for (const std::uint8_t byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex[at++] = kDigits[byte >> 4U];
    hex[at++] = kDigits[byte & 15U];
  }
  return hex;
}

}  // namespace

std::array<char, 64> sha256(std::string_view bytes) noexcept {
  Sha256 hash;
  hash.add(bytes);
  return hex_of(hash.finish());
}

std::array<char, 64> hmac_sha256(std::string_view key, std::string_view text) noexcept {
  std::uint8_t block[kBlock] = {};
  if (key.size() <= kBlock) {
    for (std::size_t i = 0; i < key.size(); ++i) block[i] = static_cast<std::uint8_t>(key[i]);
  } else {
    Sha256 hash;
    hash.add(key);
    const Digest digest = hash.finish();
    for (std::size_t i = 0; i < kDigest; ++i) block[i] = digest[i];
  }
  Sha256 inner;
  for (const std::uint8_t byte : block) inner.add(byte ^ 0x36U);
  inner.add(text);
  Sha256 outer;
  for (const std::uint8_t byte : block) outer.add(byte ^ 0x5cU);
  for (const std::uint8_t byte : inner.finish()) outer.add(byte);
  return hex_of(outer.finish());
}

}  // namespace kshim::report
