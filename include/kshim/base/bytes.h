// SPDX-License-Identifier: Apache-2.0
// All reads of untrusted bytes go through slice() and read_le<T>(), which check bounds without overflow.
// Little-endian files and hosts only, as CUDA itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kshim/base/result.h"

namespace kshim {

using Bytes = std::span<const std::byte>;

/// `size` bytes from `offset`, or Errc::truncated at `offset`.
constexpr Result<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) noexcept {
  if (offset > bytes.size() || size > bytes.size() - offset) return Error{Errc::truncated, offset};
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

/// An unaligned little-endian T (an integer or a packed struct of integers) at `offset`.
template <class T>
Result<T> read_le(Bytes bytes, std::uint64_t offset) noexcept {
  const auto part = slice(bytes, offset, sizeof(T));
  if (!part) return part.error();
  T out;
  std::memcpy(&out, part->data(), sizeof(T));
  return out;
}

inline Bytes bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kshim
