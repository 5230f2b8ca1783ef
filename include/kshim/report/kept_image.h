// SPDX-License-Identifier: Apache-2.0
// An image from memory that the driver refused lies beside the report as HASH.cubin, HASH.ptx or HASH.fatbin:
// the shim writes it, the command reads it. HASH is the content hash of all its bytes, as the module record
// has it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kshim/image/image.h"

namespace kshim::report {

constexpr std::uint64_t kMaxKeptImage = std::uint64_t{16} << 20U;
constexpr std::uint64_t kMaxKeptImages = std::uint64_t{64} << 20U;  ///< of a process

/// Empty for what is not kept.
constexpr std::string_view kept_extension(image::BlobKind kind) noexcept {
  switch (kind) {
    case image::BlobKind::cubin:
      return ".cubin";
    case image::BlobKind::ptx:
      return ".ptx";
    case image::BlobKind::fatbin:
      return ".fatbin";
    default:
      return {};
  }
}

/// The name of a kept image; of what is not kept, the hash alone.
class KeptName {
 public:
  static constexpr std::size_t kDigits = 16;
  constexpr KeptName() noexcept = default;
  constexpr KeptName(std::uint64_t hash, image::BlobKind kind) noexcept {
    for (unsigned i = 0; i < kDigits; ++i) text_[size_++] = "0123456789abcdef"[hash >> (60U - 4U * i) & 15U];
    for (const char letter : kept_extension(kind)) text_[size_++] = letter;
  }
  constexpr std::string_view view() const noexcept { return {text_, size_}; }
  constexpr std::string_view hash() const noexcept { return view().substr(0, kDigits); }
  constexpr const char* c_str() const noexcept { return text_; }

 private:
  char text_[kDigits + sizeof ".fatbin"] = {};
  std::size_t size_ = 0;
};

}  // namespace kshim::report
