// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/fatbin_search.h"

#include "kshim/image/fatbin.h"

namespace kshim::image {
namespace {

// The first eight bytes of every fatbin seen: magic, version 1, header size 16.
constexpr std::uint64_t kFatbinStart = 0x0010'0001'0000'0000ULL | kFatbinMagic;
// Of every cubin: ELF's magic, 64 bits, little-endian, version 1; and, further on, the machine.
constexpr std::uint64_t kElfStart = 0x0001'0102'464c'457fULL;
constexpr std::uint64_t kElfStartMask = 0x00ff'ffff'ffff'ffffULL;  // then comes the ABI
constexpr std::size_t kMachineAt = 18;
constexpr std::uint16_t kMachineCuda = 190;
// Of PTX, behind its comments: ".version", in the order of its bytes.
constexpr std::uint64_t kPtxStart = 0x6e6f'6973'7265'762eULL;

// Compares the first two bytes of a start at every position, 16 positions at a time, with the vector unit
// that every CPU has (SSE2, Advanced SIMD). A block with a match is then examined. Neither pair is common in
// code or text.
using Vector = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kVectorsPerBlock = 8;
constexpr std::size_t kBlock = kVectorsPerBlock * sizeof(Vector);

Vector load(const std::byte* at) noexcept {
  Vector out;
  std::memcpy(&out, at, sizeof out);  // one unaligned load
  return out;
}
constexpr Vector every(std::uint64_t start, unsigned byte) noexcept {
  const auto value = static_cast<std::uint8_t>(start >> (8 * byte));
  return Vector{} + value;
}

/// What is looked for: each includes the ones before.
enum class Starts : std::uint8_t { fatbins, cubins, ptx };

template <Starts kStarts>
bool may_start_in(const std::byte* block) noexcept {
  Vector found{};
  for (std::size_t at = 0; at < kBlock; at += sizeof(Vector)) {
    const Vector first = load(block + at);
    const Vector second = load(block + at + 1);
    const auto add = [&](std::uint64_t start) {
      found |= reinterpret_cast<Vector>(first == every(start, 0)) &
               reinterpret_cast<Vector>(second == every(start, 1));
    };
    add(kFatbinStart);
    if constexpr (kStarts >= Starts::cubins) add(kElfStart);
    if constexpr (kStarts >= Starts::ptx) add(kPtxStart);
  }
  std::uint64_t halves[2];
  std::memcpy(halves, &found, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

template <Starts kStarts>
bool starts_at(Bytes bytes, std::size_t at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  if (word == kFatbinStart || (kStarts >= Starts::ptx && word == kPtxStart)) return true;
  if (kStarts < Starts::cubins || (word & kElfStartMask) != kElfStart) return false;
  return read_le<std::uint16_t>(bytes, at + kMachineAt).value_or(0) == kMachineCuda;
}

template <Starts kStarts>
std::uint64_t find(Bytes bytes, std::uint64_t from) noexcept {
  constexpr std::size_t kStartSize = sizeof(std::uint64_t);
  if (from > bytes.size() || bytes.size() < kStartSize) return bytes.size();
  auto at = static_cast<std::size_t>(from);
  const std::size_t last = bytes.size() - kStartSize;
  while (at <= last) {
    // A block's own last position is asked for two bytes as well.
    if (bytes.size() - at > kBlock && !may_start_in<kStarts>(bytes.data() + at)) {
      at += kBlock;
      continue;
    }
    const std::size_t end = last - at < kBlock ? last : at + kBlock - 1;
    for (; at <= end; ++at)
      if (starts_at<kStarts>(bytes, at)) return at;
  }
  return bytes.size();
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
  return find<Starts::fatbins>(bytes, from);
}

std::uint64_t find_fatbin_or_cubin(Bytes bytes, std::uint64_t from) noexcept {
  return find<Starts::cubins>(bytes, from);
}

std::uint64_t find_device_image(Bytes bytes, std::uint64_t from) noexcept {
  return find<Starts::ptx>(bytes, from);
}

}  // namespace kshim::image
