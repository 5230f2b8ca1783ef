// SPDX-License-Identifier: Apache-2.0
// Layout: PKWARE's APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to 4.3.16 (end
// records), 4.5.3 (zip64). A field of all ones stands in the zip64 record or extra field instead.
#include "analyzer/input/files/container_zip_index.h"

#include <algorithm>

namespace kshim::scan {
namespace {

constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kDirectoryMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEnd64Magic = 0x06064b50;
constexpr std::uint32_t kLocator64Magic = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint64_t kDirectorySize = 46;
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kLocator64Size = 20;
constexpr std::uint64_t kCommentMax = 0xFFFF;
constexpr std::uint32_t kElsewhere = 0xFFFFFFFF;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kFlagEncrypted = 1;
constexpr unsigned kMadeByUnix = 3;
constexpr unsigned kTypeMask = 0170000;
constexpr unsigned kTypeLink = 0120000;

/// A field of a header that is known to be there.
template <class T>
T field(Bytes bytes, std::uint64_t offset) noexcept {
  return read_le<T>(bytes, offset).value_or(0);
}

/// The extra field's zip64 part, empty where there is none.
Bytes zip64_extra(Bytes extra) noexcept {
  while (extra.size() >= 4) {
    const auto part = slice(extra, 4, field<std::uint16_t>(extra, 2));
    if (!part) break;
    if (field<std::uint16_t>(extra, 0) == kZip64Extra) return *part;
    extra = extra.subspan(4 + part->size());
  }
  return {};
}

/// The value of a 32-bit field: itself, or the next 64 bits of the zip64 part.
bool widen(std::uint32_t narrow, Bytes& zip64, std::uint64_t& out) noexcept {
  out = narrow;
  if (narrow != kElsewhere) return true;
  const auto wide = read_le<std::uint64_t>(zip64, 0);
  if (!wide) return zip64.empty();  // four gigabytes less one byte, or a lie that the bounds will find
  out = *wide;
  zip64 = zip64.subspan(sizeof(std::uint64_t));
  return true;
}

}  // namespace

/// Sets base_, cursor_ and end_ from an end record.
bool ZipIndex::locate(std::uint64_t end_record) noexcept {
  std::uint64_t size = field<std::uint32_t>(bytes_, end_record + 12);
  std::uint64_t offset = field<std::uint32_t>(bytes_, end_record + 16);
  end_ = end_record;
  if (end_record >= kLocator64Size &&
      field<std::uint32_t>(bytes_, end_record - kLocator64Size) == kLocator64Magic) {
    const std::uint64_t at = field<std::uint64_t>(bytes_, end_record - kLocator64Size + 8);
    constexpr std::uint64_t kEnd64Size = 56;
    // Where the locator says, or right before it when something was put in front of the zip.
    const std::uint64_t before = end_record - kLocator64Size;
    const std::uint64_t candidates[] = {at, before >= kEnd64Size ? before - kEnd64Size : at};
    for (const std::uint64_t end64 : candidates) {
      if (end64 > before || before - end64 < kEnd64Size || field<std::uint32_t>(bytes_, end64) != kEnd64Magic)
        continue;
      size = field<std::uint64_t>(bytes_, end64 + 40);
      offset = field<std::uint64_t>(bytes_, end64 + 48);
      end_ = end64;
      break;
    }
  }
  if (size > end_ || offset > end_ - size) return false;
  base_ = 0;
  cursor_ = offset;
  if (size != 0 && field<std::uint32_t>(bytes_, offset) != kDirectoryMagic) {
    base_ = end_ - size - offset;
    cursor_ = base_ + offset;
    if (field<std::uint32_t>(bytes_, cursor_) != kDirectoryMagic) return false;
  }
  end_ = cursor_ + size;
  return true;
}

Result<ZipIndex> ZipIndex::open(Bytes bytes) noexcept {
  ZipIndex index;
  index.bytes_ = bytes;
  if (bytes.size() < kEndSize) return Error{Errc::not_found, bytes.size()};
  const std::uint64_t last = bytes.size() - kEndSize;
  for (std::uint64_t back = 0; back <= std::min(last, kCommentMax); ++back) {
    if (field<std::uint32_t>(bytes, last - back) != kEndMagic) continue;
    if (field<std::uint16_t>(bytes, last - back + 20) <= back && index.locate(last - back)) return index;
  }
  return Error{Errc::not_found, bytes.size()};
}

Result<ZipEntry> ZipIndex::next() noexcept {
  if (cursor_ >= end_) return Error{Errc::not_found, end_};
  const std::uint64_t start = cursor_;
  cursor_ = end_;
  if (end_ - start < kDirectorySize) return Error{Errc::truncated, start};
  if (field<std::uint32_t>(bytes_, start) != kDirectoryMagic) return Error{Errc::bad_magic, start};
  const std::uint64_t name_size = field<std::uint16_t>(bytes_, start + 28);
  const std::uint64_t extra_size = field<std::uint16_t>(bytes_, start + 30);
  const std::uint64_t comment_size = field<std::uint16_t>(bytes_, start + 32);
  const std::uint64_t size = kDirectorySize + name_size + extra_size + comment_size;
  if (size > end_ - start) return Error{Errc::truncated, start};
  cursor_ = start + size;
  ZipEntry entry;
  entry.name = text_of(slice(bytes_, start + kDirectorySize, name_size).value_or({}));
  entry.encrypted = (field<std::uint16_t>(bytes_, start + 8) & kFlagEncrypted) != 0;
  entry.method = field<std::uint16_t>(bytes_, start + 10);
  entry.crc = field<std::uint32_t>(bytes_, start + 16);
  Bytes zip64 = zip64_extra(slice(bytes_, start + kDirectorySize + name_size, extra_size).value_or({}));
  if (!widen(field<std::uint32_t>(bytes_, start + 24), zip64, entry.size) ||
      !widen(field<std::uint32_t>(bytes_, start + 20), zip64, entry.compressed_size) ||
      !widen(field<std::uint32_t>(bytes_, start + 42), zip64, entry.offset))
    return Error{Errc::truncated, start + kDirectorySize + name_size};
  if (entry.offset > UINT64_MAX - base_) return Error{Errc::overflow, start + 42};
  entry.offset += base_;
  const bool unix_mode = field<std::uint16_t>(bytes_, start + 4) >> 8U == kMadeByUnix;
  const bool link = unix_mode && (field<std::uint32_t>(bytes_, start + 38) >> 16U & kTypeMask) == kTypeLink;
  entry.file = !link && !entry.name.ends_with('/');
  return entry;
}

Result<ZipEntry> ZipIndex::at(std::uint64_t position) const noexcept {
  ZipIndex there = *this;
  there.cursor_ = position;
  return there.next();
}

Result<Bytes> ZipIndex::data(const ZipEntry& entry) const noexcept {
  const auto header = slice(bytes_, entry.offset, kLocalSize);
  if (!header) return header.error();
  if (field<std::uint32_t>(*header, 0) != kLocalMagic) return Error{Errc::bad_magic, entry.offset};
  const std::uint64_t skipped =
      kLocalSize + field<std::uint16_t>(*header, 26) + field<std::uint16_t>(*header, 28);
  return slice(bytes_, entry.offset + skipped, entry.compressed_size);
}

}  // namespace kshim::scan
