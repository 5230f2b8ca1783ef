// SPDX-License-Identifier: Apache-2.0
// Cubins with line information, composed for tests.
#pragma once
#include <elf.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cubin_builder.h"

namespace kshim::test {

/// A line table of version 2 with a sequence for each kernel, as ptxas writes it.
struct LineTable {
  std::uint16_t version = 2;
  std::uint8_t line_range = 14;
  std::vector<std::pair<std::string, std::uint8_t>> kernels = {{"_Z1av", 7}, {"_Z1bv", 20}};
  std::uint8_t file = 1;
  std::vector<std::uint64_t> places;  ///< of the addresses, by kernel

  Buffer build() {
    Buffer header;
    append(header, std::string_view("\1\1", 2));  // instruction length, is_stmt
    append(header, static_cast<std::int8_t>(-5));
    append(header, line_range);
    append(header, std::uint8_t{10});
    append(header, std::string_view("\0\1\1\1\1\0\0\0\1", 9));
    append(header, std::string_view("/src\0\0a.cu\0\1\0\0\0", 15));
    Buffer out;
    append(out, std::uint32_t{0});
    append(out, version);
    append(out, static_cast<std::uint32_t>(header.size()));
    append(out, Bytes(header));
    for (const auto& [name, line] : kernels) {
      append(out, std::string_view("\0\x09\x02", 3));
      places.push_back(out.size());
      append(out, std::uint64_t{0});
      for (const std::uint8_t byte :
           {std::uint8_t{4}, file, std::uint8_t{3}, static_cast<std::uint8_t>(line - 1), std::uint8_t{1}})
        append(out, byte);
      append(out, std::uint8_t{230});                  // a second row, a line further down
      append(out, std::string_view("\0\x01\x01", 3));  // end of sequence
    }
    const auto size = static_cast<std::uint32_t>(out.size() - 4);
    std::memcpy(out.data(), &size, sizeof(size));
    return out;
  }
};

/// A cubin around a line table.
inline Buffer cubin_with(const Buffer& lines, const std::vector<std::uint64_t>& places,
                         const std::vector<std::string>& names, bool addends = false) {
  ElfBuilder elf;
  elf.flags = 0x6000002U | 86U << 8;
  Buffer relocations;
  const auto table = elf.section(".debug_line", SHT_PROGBITS, lines);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto text = elf.section(".text." + names[i], SHT_PROGBITS, Buffer(128));
    const std::uint64_t symbol = elf.symbol(names[i], 0x12, 0x10, text, 0, 128);
    append(relocations, places[i]);
    append(relocations, symbol << 32 | 2);
    if (addends) append(relocations, std::uint64_t{0});
  }
  elf.section(addends ? ".rela.debug_line" : ".rel.debug_line", addends ? SHT_RELA : SHT_REL, relocations, 0,
              table);
  return elf.build();
}

}  // namespace kshim::test
