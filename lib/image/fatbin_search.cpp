// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/fatbin_search.h"

#include "kshim/image/byte_pairs.h"
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

/// What is looked for: each includes the ones before.
enum class Starts : std::uint8_t { fatbins, cubins, ptx };

constexpr BytePair pair_of(std::uint64_t start) noexcept {
  return {static_cast<std::uint8_t>(start), static_cast<std::uint8_t>(start >> 8U)};
}
// None is common in code or text.
template <Starts>
constexpr std::array kPairs = {pair_of(kFatbinStart)};
template <>
constexpr std::array kPairs<Starts::cubins> = {pair_of(kFatbinStart), pair_of(kElfStart)};
template <>
constexpr std::array kPairs<Starts::ptx> = {pair_of(kFatbinStart), pair_of(kElfStart), pair_of(kPtxStart)};

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
  return find_pair<kPairs<kStarts>>(bytes, from, [&](std::size_t at) {
    return bytes.size() - at >= kStartSize && starts_at<kStarts>(bytes, at);
  });
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
