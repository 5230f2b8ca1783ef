// SPDX-License-Identifier: Apache-2.0
#include "bare_walk.h"

#include <elf.h>

#include <cstring>

namespace {

template <class T>
T at(const char* from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

constexpr char kStart[] = "\x50\xed\x55\xba\x01\x00\x10";  // and the NUL of the literal
constexpr std::size_t kStartSize = sizeof kStart;
static_assert(kStartSize == 8);

/// Counts one fatbin; returns its end.
const char* count_fatbin(const char* fatbin, BareCount& count) {
  const char* end = fatbin + 16 + at<std::uint64_t>(fatbin + 8);
  ++count.fatbins;
  for (const char* entry = fatbin + 16; entry < end;
       entry += at<std::uint32_t>(entry + 4) + at<std::uint64_t>(entry + 8))
    ++count.images;
  return end;
}

}  // namespace

BareCount bare_walk(const char* file, std::size_t size) {
  BareCount count;
  const auto header = at<Elf64_Ehdr>(file);
  if (size < sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return count;
  const auto section_at = [&](unsigned index) {
    return at<Elf64_Shdr>(file + header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const char* names = file + section_at(header.e_shstrndx).sh_offset;
  for (unsigned index = 1; index < header.e_shnum; ++index) {
    const Elf64_Shdr section = section_at(index);
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_ALLOC) == 0) continue;
    const char* now = file + section.sh_offset;
    const char* end = now + section.sh_size;
    const char* name = names + section.sh_name;
    if (std::strcmp(name, ".nv_fatbin") == 0 || std::strcmp(name, "__nv_relfatbin") == 0) {
      while (end - now >= 16)
        now = at<std::uint64_t>(now) == at<std::uint64_t>(kStart) ? count_fatbin(now, count) : now + 8;
      continue;
    }
    if ((section.sh_flags & SHF_EXECINSTR) != 0 || std::strcmp(name, ".nvFatBinSegment") == 0) continue;
    while (now < end) {
      const void* found = memmem(now, static_cast<std::size_t>(end - now), kStart, kStartSize);
      const char* stop = found != nullptr ? static_cast<const char*>(found) : end;
      count.searched += static_cast<std::uint64_t>(stop - now);
      now = found != nullptr ? count_fatbin(stop, count) : end;
    }
  }
  return count;
}
