// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/fatbin_search.h"

#include "kshim/image/fatbin.h"

namespace kshim::image {
namespace {

// The first eight bytes of every fatbin seen: magic, version 1, header size 16.
constexpr std::uint64_t kStart = 0x0010'0001'0000'0000ULL | kFatbinMagic;
// Words are compared four at a time by the vector unit every CPU has (SSE2, Advanced SIMD), which has no
// comparison of 64 bits on the former: the lower halves decide, and a hit in a block has it looked at
// closely.
using Words = std::uint32_t __attribute__((vector_size(16)));
constexpr std::size_t kWordsPerBlock = 16;
constexpr std::size_t kBlock = kWordsPerBlock * sizeof(Words);

Words load(const std::byte* at) noexcept {
  Words out;
  std::memcpy(&out, at, sizeof out);  // one unaligned load
  return out;
}

bool may_hold_magic(const std::byte* block) noexcept {
  constexpr Words kMagic = {kFatbinMagic, kFatbinMagic, kFatbinMagic, kFatbinMagic};
  Words found{};
  for (std::size_t at = 0; at < kBlock; at += sizeof(Words))
    found |= reinterpret_cast<Words>(load(block + at) == kMagic);
  std::uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace

SectionRole section_role(const ElfSection& section) noexcept {
  constexpr std::uint32_t kProgramBits = 1;  // SHT_PROGBITS
  constexpr std::uint32_t kNoBits = 8;       // SHT_NOBITS
  constexpr std::uint64_t kAllocated = 0x2;  // SHF_ALLOC
  constexpr std::uint64_t kCode = 0x4;       // SHF_EXECINSTR
  constexpr std::uint64_t kCompressed = 0x800;
  if (section.type == kNoBits || section.size == 0) return SectionRole::none;
  if (section.name == ".nv_fatbin") return SectionRole::fatbins;
  if (section.name == "__nv_relfatbin") return SectionRole::relocatable;
  if (section.name == ".nvFatBinSegment") return SectionRole::wrappers;
  if (section.type != kProgramBits || (section.flags & kAllocated) == 0) return SectionRole::none;
  if ((section.flags & (kCode | kCompressed)) != 0) return SectionRole::none;
  // Tables for unwinding are large and never hold any.
  const bool unwinding =
      section.name == ".eh_frame" || section.name == ".eh_frame_hdr" || section.name == ".gcc_except_table";
  return unwinding ? SectionRole::none : SectionRole::data;
}

std::uint64_t find_fatbin(Bytes bytes, std::uint64_t from) noexcept {
  if (from > bytes.size() || bytes.size() < sizeof(std::uint64_t)) return bytes.size();
  std::size_t at = (static_cast<std::size_t>(from) + 7) & ~std::size_t{7};
  const std::size_t last = bytes.size() - sizeof(std::uint64_t);
  while (at <= last) {
    if (bytes.size() - at >= kBlock && !may_hold_magic(bytes.data() + at)) {
      at += kBlock;
      continue;
    }
    const std::size_t end = last - at < kBlock ? last : at + kBlock - sizeof(std::uint64_t);
    for (; at <= end; at += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (word == kStart) return at;
    }
  }
  return bytes.size();
}

}  // namespace kshim::image
