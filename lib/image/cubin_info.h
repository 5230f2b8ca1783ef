// SPDX-License-Identifier: Apache-2.0
// The records of a cubin's .nv.info sections, as measured on the output of ptxas 12.4, 12.9 and 13.0:
// docs/internals/image-format.md.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "kshim/image/arch.h"

namespace kshim::image {

// Attributes of .nv.info sections; the names are cuobjdump's, without EIATTR_.
enum class Attribute : std::uint8_t {
  max_threads = 0x05,
  reqntid = 0x10,
  frame_size = 0x11,
  min_stack_size = 0x12,
  kparam_info = 0x17,
  cbank_param_size = 0x19,
  regcount = 0x2f,
  kparam_info_v2 = 0x45,
};

struct InfoRecord {
  Attribute attribute{};
  std::uint16_t value = 0;  ///< of the short forms
  Bytes bytes;              ///< of the long form
};

/// Walks the records of a .nv.info section: u8 format, u8 attribute, u16 value; format 4 has `value` bytes
/// after it.
class InfoWalk {
 public:
  explicit InfoWalk(Bytes bytes) noexcept : bytes_(bytes) {}
  bool next(InfoRecord& out) noexcept {
    constexpr std::uint8_t kSized = 4;
    const auto format = read_le<std::uint8_t>(bytes_, at_);
    const auto attribute = read_le<std::uint8_t>(bytes_, at_ + 1);
    const auto value = read_le<std::uint16_t>(bytes_, at_ + 2);
    if (!format || !attribute || !value || *format == 0 || *format > kSized) return false;
    out = {static_cast<Attribute>(*attribute), *value, {}};
    at_ += 4;
    if (*format != kSized) return true;
    const auto bytes = slice(bytes_, at_, *value);
    if (!bytes) return false;
    out.bytes = *bytes;
    at_ += *value;
    return true;
  }

 private:
  Bytes bytes_;
  std::uint64_t at_ = 0;
};

/// .nv.compat: records of u8 format, u8 tag, u16 value. Tag 9 is 1 in `a` cubins. Tag 2 does not tell `f`: it
/// is 2 in many base cubins of NCCL and cuBLAS 13.0.
inline Suffix suffix_in_compat(Bytes compat) noexcept {
  InfoWalk walk(compat);
  for (InfoRecord record; walk.next(record);)
    if (static_cast<std::uint8_t>(record.attribute) == 9 && (record.value & 0xffU) == 1) return Suffix::a;
  return Suffix::none;
}

}  // namespace kshim::image
