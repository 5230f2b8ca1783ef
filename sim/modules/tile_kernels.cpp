// SPDX-License-Identifier: Apache-2.0
// Layout: "Binary Format" of NVIDIA's Tile IR documents, 13.1 and 13.4, and what cuTile 1.7 and nvcc 13.4
// write. A header of twelve bytes, then sections: a byte with the number and, as its high bit, whether an
// alignment follows the size.
#include "modules/tile_kernels.h"

#include <optional>

namespace kshim::sim {
namespace {

constexpr std::uint64_t kHeaderSize = 12;
constexpr std::uint8_t kAligned = 0x80;
constexpr std::uint8_t kEndSection = 0;
constexpr std::uint8_t kStringSection = 1;
constexpr std::uint8_t kFunctionSection = 2;
constexpr std::uint8_t kKernel = 0x2;
constexpr std::uint8_t kHasHints = 0x4;
enum class Attribute : std::uint8_t {
  integer = 1,
  boolean = 3,
  type = 4,
  string = 5,
  dictionary = 10,
  hints = 11
};
constexpr int kDeepest = 8;

/// Reads on until something is missing; from then on every answer is 0 and `bad` is true.
struct Cursor {
  Bytes bytes;
  std::uint64_t at = 0;
  bool bad = false;

  std::uint8_t byte() {
    const auto value = read_le<std::uint8_t>(bytes, at++);
    bad = bad || !value;
    return value.value_or(0);
  }
  std::uint64_t number() {  // seven bits a byte, the lowest first
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80U) == 0) return value;
    }
    bad = true;
    return 0;
  }
  void skip(std::uint64_t size) {
    bad = bad || at > bytes.size() || size > bytes.size() - at;
    if (!bad) at += size;
  }
  void align(std::uint64_t to) {
    if (to > 1) skip((to - at % to) % to);
  }
};

void skip_attribute(Cursor& cursor, int depth) {
  switch (static_cast<Attribute>(cursor.byte())) {
    case Attribute::integer:
      cursor.number();
      cursor.number();
      return;
    case Attribute::boolean:
    case Attribute::type:
    case Attribute::string:
      cursor.number();
      return;
    case Attribute::dictionary:
    case Attribute::hints:
      if (depth < kDeepest) {
        for (std::uint64_t left = cursor.number(); left > 0 && !cursor.bad; --left) {
          cursor.number();  // the key
          skip_attribute(cursor, depth + 1);
        }
        return;
      }
      break;
  }
  cursor.bad = true;
}

struct Strings {
  Bytes bytecode;
  std::uint64_t offsets = 0;
  std::uint64_t count = 0;
  std::uint64_t end = 0;

  std::optional<std::string_view> at(std::uint64_t index) const {
    if (index >= count) return std::nullopt;
    const auto from = read_le<std::uint32_t>(bytecode, offsets + 4 * index);
    const auto to = index + 1 < count
                        ? read_le<std::uint32_t>(bytecode, offsets + 4 * (index + 1))
                        : Result<std::uint32_t>(static_cast<std::uint32_t>(end - offsets - 4 * count));
    if (!from || !to || *from > *to) return std::nullopt;
    const auto text = slice(bytecode, offsets + 4 * count + *from, *to - *from);
    if (!text) return std::nullopt;
    return text_of(*text);
  }
};

bool read_names(Cursor functions, const Strings& strings, std::vector<std::string_view>& names) {
  for (std::uint64_t left = functions.number(); left > 0 && !functions.bad; --left) {
    const auto name = strings.at(functions.number());
    functions.number();  // type
    const std::uint8_t flags = functions.byte();
    functions.number();  // place in the source
    if ((flags & kHasHints) != 0) skip_attribute(functions, 0);
    functions.skip(functions.number());  // body
    if (!name || functions.bad) return false;
    if ((flags & kKernel) != 0) names.push_back(*name);
  }
  return !functions.bad;
}

}  // namespace

bool tile_kernels(Bytes bytecode, std::vector<std::string_view>& names) {
  if (!text_of(bytecode).starts_with(std::string_view("\x7f"
                                                      "TileIR\0",
                                                      8)))
    return false;
  std::optional<Cursor> functions;
  Strings strings;
  Cursor cursor{bytecode, kHeaderSize};
  for (;;) {
    const std::uint8_t id = cursor.byte();
    if (cursor.bad) return false;
    if ((id & ~kAligned) == kEndSection) break;
    const std::uint64_t size = cursor.number();
    if ((id & kAligned) != 0) cursor.align(cursor.number());
    const std::uint64_t start = cursor.at;
    cursor.skip(size);
    if (cursor.bad) return false;
    if ((id & ~kAligned) == kFunctionSection)
      functions = Cursor{bytecode.first(static_cast<std::size_t>(start + size)), start};
    if ((id & ~kAligned) != kStringSection) continue;
    Cursor table{bytecode, start};
    const std::uint64_t count = table.number();
    table.align(sizeof(std::uint32_t));
    if (table.bad || table.at > start + size || count > (start + size - table.at) / sizeof(std::uint32_t))
      return false;
    strings = {bytecode, table.at, count, start + size};
  }
  return !functions || read_names(*functions, strings, names);
}

}  // namespace kshim::sim
