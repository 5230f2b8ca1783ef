// SPDX-License-Identifier: Apache-2.0
// Compilers of CUDA as programs: ptxas, tileiras, nvcc, cicc, nvlink. Which release one is of is read from
// its file without running it: "Cuda compilation tools, release 13.0, V13.0.88" stands in the constants of
// each, of most near their beginning, of cicc after 9 MB. No heap.
#pragma once
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kshim/image/arch.h"

namespace kshim::image {

/// Whether a file of this name is one: "ptxas", "ptxas-blackwell", "nvcc.bin".
constexpr bool is_compiler_program(std::string_view file_name) noexcept {
  for (const std::string_view name : {"ptxas", "tileiras", "nvcc", "cicc", "nvlink"}) {
    if (file_name.starts_with(name) &&
        (file_name.size() == name.size() || file_name[name.size()] == '-' || file_name[name.size()] == '.'))
      return true;
  }
  return false;
}

/// `read(offset, to, size)` copies a part of the file and returns how much; `block` is room for a part.
/// Unknown (0.0) where the file does not tell.
template <class Read>
Version compiler_release(const Read& read, std::span<char> block) noexcept {
  constexpr std::string_view kBefore = "Cuda compilation tools, release ";
  constexpr std::size_t kMaxLength = kBefore.size() + 8;  // "13.0," and more
  constexpr unsigned kMaxSections = 128;
  constexpr std::uint64_t kMax = std::uint64_t{32} << 20U;
  Elf64_Ehdr header;
  if (block.size() <= kMaxLength || read(0, &header, sizeof header) != sizeof header ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return {};
  // The constants are the largest section that is read-only and no code.
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  for (unsigned i = 0; i < std::min<unsigned>(header.e_shnum, kMaxSections); ++i) {
    Elf64_Shdr section;
    if (read(header.e_shoff + i * sizeof section, &section, sizeof section) != sizeof section) break;
    if (section.sh_type == SHT_PROGBITS && section.sh_flags == SHF_ALLOC && section.sh_size > size)
      begin = section.sh_offset, size = section.sh_size;
  }
  size = std::min(size, kMax);
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t got = read(begin + at, block.data(), std::min<std::uint64_t>(block.size(), size - at));
    const std::string_view text(block.data(), got);
    for (std::size_t found = 0; (found = text.find(kBefore, found)) != std::string_view::npos; ++found) {
      const std::size_t number = found + kBefore.size();
      const std::size_t comma = text.find(',', number);
      if (comma == std::string_view::npos || comma - number > 6)
        continue;  // a format, or cut off: it comes again
      if (const auto version = parse_version({text.data() + number, comma - number})) return *version;
    }
    if (got <= kMaxLength) break;
    at += got - kMaxLength;
  }
  return {};
}

}  // namespace kshim::image
