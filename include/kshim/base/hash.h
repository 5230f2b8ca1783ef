// SPDX-License-Identifier: Apache-2.0
// The content id of a loose image (one that lies in no mapped file): the shim writes it, the command compares
// it with files. FNV-1a, 64 bits, of the bytes: an identity for look-up, not a defence against forgery.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim {

constexpr std::uint64_t kHashSeed = 0xcbf29ce484222325ULL;

constexpr std::uint64_t content_hash(Bytes bytes, std::uint64_t seed = kHashSeed) noexcept {
  std::uint64_t hash = seed;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace kshim
