// SPDX-License-Identifier: Apache-2.0
// PE files, the DLLs and programs of Windows: sections and addresses. Bounds-checked views, no heap.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::image {

struct PeSection {
  std::string_view name;      ///< at most 8 characters: ".nv_fatb" is .nv_fatbin
  std::uint32_t address = 0;  ///< relative to the image base
  std::uint32_t offset = 0;   ///< in the file
  std::uint32_t size = 0;     ///< in the file, as the header says
  std::uint32_t flags = 0;
  Bytes bytes;                                                   ///< ends where the file does
  bool is_code() const noexcept { return (flags & 0x20) != 0; }  ///< IMAGE_SCN_CNT_CODE
  bool is_initialized_data() const noexcept {
    return (flags & 0x40) != 0;
  }  ///< IMAGE_SCN_CNT_INITIALIZED_DATA
};

class PeReader {
 public:
  PeReader() = default;
  /// Errc::bad_magic when the bytes are no PE file (a DOS program, for one).
  static Result<PeReader> open(Bytes bytes) noexcept;
  std::uint16_t machine() const noexcept { return machine_; }  ///< 0x8664, 0xaa64
  std::uint64_t image_base() const noexcept { return image_base_; }
  std::uint32_t section_count() const noexcept { return section_count_; }
  /// Errc::truncated when the table of sections ends early.
  Result<PeSection> section(std::uint32_t index) const noexcept;

 private:
  Bytes bytes_;
  std::uint64_t image_base_ = 0;
  std::uint64_t section_offset_ = 0;
  std::uint32_t section_count_ = 0;
  std::uint16_t machine_ = 0;
};

}  // namespace kshim::image
