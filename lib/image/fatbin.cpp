// SPDX-License-Identifier: Apache-2.0
// Field offsets and their evidence: docs/internals/image-format.md.
#include "kshim/image/fatbin.h"

#include "cubin_info.h"

namespace kshim::image {
namespace {

constexpr std::uint64_t kContainerHeaderSize = 16;
constexpr std::uint64_t kEntryHeaderSize = 64;  // the least; longer ones carry options after it

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t entries_size;
};
static_assert(sizeof(ContainerHeader) == kContainerHeaderSize);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t payload_size;  // padded to 8
  std::uint32_t compressed_size;
  std::uint32_t options_offset;
  std::uint16_t minor;  // with major: PTX ISA of PTX, bytecode version of Tile IR, format of other kinds
  std::uint16_t major;
  std::uint32_t sm;
  std::uint64_t reserved0;
  std::uint64_t flags;
  std::uint64_t reserved1;
  std::uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == kEntryHeaderSize);

constexpr std::uint16_t kEntryVersion = 0x0101;
constexpr std::uint64_t kFlagDebug = 0x2;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagScrambled = 0x10000;  // LTO-IR only: neither frame magic nor plain bytes follow
constexpr std::uint64_t kFlagArchSpecific = 0x100000;
constexpr std::uint64_t kFlagFamilySpecific = 0x200000;
// sm_NN is a decimal number of two to four digits; anything else is not a header.
constexpr std::uint32_t kSmMin = 10;
constexpr std::uint32_t kSmMax = 9999;

Result<ImageKind> kind_of(std::uint16_t kind, std::uint64_t offset) noexcept {
  switch (kind) {
    case 1:
      return ImageKind::ptx;
    case 2:
      return ImageKind::cubin;
    case 8:
      return ImageKind::ltoir;
    case 0x80:
      return ImageKind::tileir;
    default:
      return Error{Errc::unknown_kind, offset};
  }
}

Compression compression_of(const EntryHeader& entry) noexcept {
  if ((entry.flags & kFlagScrambled) != 0) return Compression::unknown;
  if ((entry.flags & kFlagZstd) != 0) return Compression::zstd;
  if ((entry.flags & kFlagLz4) != 0) return Compression::lz4;
  // An uncompressed size without a known flag: a compression method that is newer than this code.
  return entry.uncompressed_size != 0 ? Compression::unknown : Compression::none;
}

/// The copy of a cubin's .nv.compat behind the fixed part: u32 0x48, its size, a byte, its records.
constexpr std::uint64_t kFlagCompat = 0x1000000;
constexpr std::uint64_t kCompatSize = 68;
constexpr std::uint64_t kCompat = 73;

/// Cubins that tileiras made for 9.0 and later are of `a` targets, and only these records say so: the flags
/// have the architecture that nvcc was asked for.
Suffix suffix_of(const EntryHeader& entry, Bytes header) noexcept {
  if ((entry.flags & kFlagArchSpecific) != 0) return Suffix::a;
  if ((entry.flags & kFlagFamilySpecific) != 0) return Suffix::f;
  if ((entry.flags & kFlagCompat) == 0) return Suffix::none;
  const auto compat = slice(header, kCompat, read_le<std::uint32_t>(header, kCompatSize).value_or(0));
  return compat ? suffix_in_compat(*compat) : Suffix::none;
}

}  // namespace

Result<FatbinReader> FatbinReader::open_damaged(Bytes bytes) noexcept {
  const auto header = read_le<ContainerHeader>(bytes, 0);
  if (!header) {
    // Four bytes suffice to distinguish a truncated fatbin from other data.
    const auto magic = read_le<std::uint32_t>(bytes, 0);
    if (magic && *magic != kFatbinMagic) return Error{Errc::bad_magic, 0};
    return header.error();
  }
  if (header->magic != kFatbinMagic) return Error{Errc::bad_magic, 0};
  if (header->version != 1) return Error{Errc::unsupported_version, 4};
  if (header->header_size < kContainerHeaderSize) return Error{Errc::bad_header, 6};
  if (header->entries_size > UINT64_MAX - header->header_size) return Error{Errc::overflow, 8};
  FatbinReader reader;
  reader.size_ = header->header_size + header->entries_size;
  reader.bytes_ = reader.size_ < bytes.size() ? bytes.first(static_cast<std::size_t>(reader.size_)) : bytes;
  reader.cursor_ = header->header_size;
  reader.whole_ = reader.cursor_;
  return reader;
}

Result<FatbinReader> FatbinReader::open(Bytes bytes) noexcept {
  const auto reader = open_damaged(bytes);
  if (reader && reader->size() > bytes.size()) return Error{Errc::truncated, bytes.size()};
  return reader;
}

Result<Image> FatbinReader::next() noexcept {
  if (cursor_ >= size_) return Error{Errc::not_found, size_};
  const std::uint64_t start = cursor_;
  cursor_ = size_;  // a damaged entry ends the walk: nothing after it can be trusted
  const auto read = read_le<EntryHeader>(bytes_, start);
  if (!read) return Error{Errc::truncated, start};
  const EntryHeader& entry = *read;
  if (entry.version != kEntryVersion) return Error{Errc::unsupported_version, start + 2};
  if (entry.header_size < kEntryHeaderSize) return Error{Errc::bad_header, start + 4};
  if (entry.payload_size > UINT64_MAX - entry.header_size) return Error{Errc::overflow, start + 8};
  const std::uint64_t step = entry.header_size + entry.payload_size;
  if (step > size_ - start || start + step > bytes_.size()) return Error{Errc::truncated, start};
  // The sizes agree: from here on the walk can go on past an entry that is not understood.
  cursor_ = start + step;
  whole_ = cursor_;

  kind_ = entry.kind;
  const auto kind = kind_of(entry.kind, start);
  if (!kind) return kind.error();
  if (entry.sm < kSmMin || entry.sm > kSmMax) return Error{Errc::bad_header, start + 28};
  Image image;
  image.kind = *kind;
  image.arch = {ComputeCapability::from_number(entry.sm),
                suffix_of(entry, bytes_.subspan(static_cast<std::size_t>(start), entry.header_size))};
  if (image.kind == ImageKind::ptx) image.isa = {entry.major, entry.minor};
  // A byte each, and both in the second field.
  if (image.kind == ImageKind::tileir)
    image.isa = {static_cast<std::uint16_t>(entry.major >> 8U),
                 static_cast<std::uint16_t>(entry.major & 0xffU)};
  image.compression = compression_of(entry);
  image.debug = (entry.flags & kFlagDebug) != 0;
  image.flags = entry.flags;
  image.offset = start;
  std::uint64_t stored = entry.payload_size;
  if (image.compression != Compression::none) {
    if (entry.compressed_size > stored) return Error{Errc::bad_header, start + 16};
    if (entry.compressed_size != 0) stored = entry.compressed_size;
    image.uncompressed_size = entry.uncompressed_size;
  } else {
    image.uncompressed_size = stored;
  }
  image.payload =
      bytes_.subspan(static_cast<std::size_t>(start + entry.header_size), static_cast<std::size_t>(stored));
  return image;
}

}  // namespace kshim::image
