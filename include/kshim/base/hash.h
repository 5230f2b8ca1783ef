// SPDX-License-Identifier: Apache-2.0
// Two 64-bit hashes for look-up. Neither protects against forgery.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim {

constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325ULL;

/// FNV-1a, for short keys; a seed continues an earlier one.
constexpr std::uint64_t key_hash(Bytes bytes, std::uint64_t seed = kHashSeed) noexcept {
  std::uint64_t hash = seed;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return hash;
}

/// The content id of a loose image (one that lies in no mapped file): the shim writes it, the command
/// compares it with files. The shim takes it at every load, so it reads 64 bytes a step, in four lanes. A
/// lane takes two little-endian words a and b:
///   lane = high and low half of (a ^ kOdd) * (b ^ lane), the 128-bit product, combined by exclusive or
/// The last step is padded with zeros; at the end the size and the lanes are folded in the same way.
inline std::uint64_t content_hash(Bytes bytes) noexcept {
  __extension__ using Product = unsigned __int128;
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  constexpr std::size_t kLanes = 4;
  constexpr std::size_t kStep = kLanes * 16;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Product product = Product{a} * b;
    return static_cast<std::uint64_t>(product >> 64U) ^ static_cast<std::uint64_t>(product);
  };
  std::uint64_t lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = kHashSeed + i * kOdd;
  const auto take = [&](const std::byte* from) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::uint64_t words[2];
      __builtin_memcpy(words, from + i * sizeof words, sizeof words);
      lanes[i] = fold(words[0] ^ kOdd, words[1] ^ lanes[i]);
    }
  };
  std::size_t done = 0;
  for (; bytes.size() - done >= kStep; done += kStep) take(bytes.data() + done);
  if (done < bytes.size()) {
    std::byte rest[kStep] = {};
    for (std::size_t i = 0; done + i < bytes.size(); ++i) rest[i] = bytes[done + i];
    take(rest);
  }
  std::uint64_t hash = bytes.size() ^ kHashSeed;
  for (const std::uint64_t lane : lanes) hash = fold(hash ^ kOdd, lane ^ kHashSeed);
  return hash;
}

}  // namespace kshim
