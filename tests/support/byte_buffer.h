// SPDX-License-Identifier: Apache-2.0
// Little-endian bytes put together, or damaged, by tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kshim/base/bytes.h"

namespace kshim::test {

using Buffer = std::vector<std::byte>;

/// Numbers only: a Buffer given to an unconstrained template would be written as its own pointers.
template <class T>
requires std::is_arithmetic_v<T>
void append(Buffer& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}
inline void append(Buffer& out, Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
inline void append(Buffer& out, std::string_view text) { append(out, bytes_of(text)); }

inline void pad_to(Buffer& out, std::size_t alignment) {
  while (out.size() % alignment != 0) out.push_back(std::byte{0});
}

/// Overwrites what stands at `offset`: how a whole file becomes a broken one.
template <class T>
requires std::is_arithmetic_v<T>
void put(Buffer& out, std::size_t offset, T value) {
  if (offset + sizeof(T) > out.size()) out.resize(offset + sizeof(T));
  std::memcpy(out.data() + offset, &value, sizeof(T));
}

inline Buffer to_buffer(std::string_view text) {
  Buffer out;
  append(out, text);
  return out;
}

}  // namespace kshim::test
