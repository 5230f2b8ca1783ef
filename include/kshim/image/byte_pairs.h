// SPDX-License-Identifier: Apache-2.0
// Searches bytes for the beginnings of formats by their first two bytes, 16 positions at a time, with the
// vector unit that every CPU has (SSE2, Advanced SIMD).
// No heap, no exceptions.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kshim/base/bytes.h"

namespace kshim::image {

struct BytePair {
  std::uint8_t first = 0;
  std::uint8_t second = 0;
};

namespace byte_pairs {

using Vector = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kVectorsPerBlock = 8;
constexpr std::size_t kBlock = kVectorsPerBlock * sizeof(Vector);

inline Vector load(const std::byte* at) noexcept {
  Vector out;
  std::memcpy(&out, at, sizeof out);  // one unaligned load
  return out;
}

template <auto kPair>
Vector equal(const Vector& first, const Vector& second) noexcept {
  return reinterpret_cast<Vector>(first == Vector{} + kPair.first) &
         reinterpret_cast<Vector>(second == Vector{} + kPair.second);
}

/// Whether one of the pairs begins in a block; the byte behind the block is read too.
template <const auto& kPairs, std::size_t... kIndex>
bool any_in(const std::byte* block, std::index_sequence<kIndex...>) noexcept {
  Vector found{};
  for (std::size_t at = 0; at < kBlock; at += sizeof(Vector)) {
    const Vector first = load(block + at);
    const Vector second = load(block + at + 1);
    ((found |= equal<kPairs[kIndex]>(first, second)), ...);
  }
  std::uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace byte_pairs

/// The first offset from `from` on where begins(offset) holds, which is asked in blocks with one of kPairs,
/// and in the last; bytes.size() if there is none. kPairs: a constexpr array of BytePair.
template <const auto& kPairs, class Begins>
std::uint64_t find_pair(Bytes bytes, std::uint64_t from, const Begins& begins) noexcept {
  using byte_pairs::kBlock;
  for (auto at = static_cast<std::size_t>(from); at < bytes.size();) {
    const std::size_t left = bytes.size() - at;
    if (left > kBlock &&
        !byte_pairs::any_in<kPairs>(bytes.data() + at, std::make_index_sequence<kPairs.size()>())) {
      at += kBlock;
      continue;
    }
    for (const std::size_t end = at + (left < kBlock ? left : kBlock); at < end; ++at)
      if (begins(at)) return at;
  }
  return bytes.size();
}

}  // namespace kshim::image
