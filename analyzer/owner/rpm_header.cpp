// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/rpm_header.h"

namespace kshim::packages {
namespace {

constexpr std::size_t kEntrySize = 16;
// rpm's own limits (lib/header.c): more is damage.
constexpr std::uint32_t kMostEntries = 0xffff;
constexpr std::uint32_t kLargestHeap = 0x0fffffff;
// Tags and types (rpm.org, "RPM Tags"; lib/rpmtag.h).
constexpr std::uint32_t kVersion = 1001;
constexpr std::uint32_t kRelease = 1002;
constexpr std::uint32_t kEpoch = 1003;
constexpr std::uint32_t kOldFileNames = 1027;
constexpr std::uint32_t kDirIndexes = 1116;
constexpr std::uint32_t kBaseNames = 1117;
constexpr std::uint32_t kDirNames = 1118;
constexpr std::uint32_t kInt32 = 4;
constexpr std::uint32_t kString = 6;
constexpr std::uint32_t kStringArray = 8;
constexpr std::uint32_t kI18nString = 9;

// Numbers are big-endian.
std::uint32_t number(Bytes bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return out;
}

/// The text up to the next NUL, which must be there.
std::optional<std::string_view> text_in(Bytes heap, std::uint64_t offset) {
  if (offset >= heap.size()) return std::nullopt;
  const std::string_view rest = text_of(heap).substr(static_cast<std::size_t>(offset));
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

}  // namespace

std::optional<RpmHeader> RpmHeader::open(Bytes blob) {
  constexpr std::size_t kCounts = 8;
  if (blob.size() < kCounts) return std::nullopt;
  const std::uint32_t entries = number(blob, 0);
  const std::uint32_t heap = number(blob, 4);
  if (entries == 0 || entries > kMostEntries || heap > kLargestHeap) return std::nullopt;
  const std::uint64_t table = std::uint64_t{entries} * kEntrySize;
  if (blob.size() - kCounts < table || blob.size() - kCounts - table < heap) return std::nullopt;
  RpmHeader out;
  out.table_ = blob.subspan(kCounts, static_cast<std::size_t>(table));
  out.heap_ = blob.subspan(kCounts + static_cast<std::size_t>(table), heap);
  return out;
}

std::optional<RpmHeader::Entry> RpmHeader::find(std::uint32_t tag) const {
  for (std::size_t at = 0; at + kEntrySize <= table_.size(); at += kEntrySize) {
    if (number(table_, at) == tag)
      return Entry{number(table_, at + 4), number(table_, at + 8), number(table_, at + 12)};
  }
  return std::nullopt;
}

std::string RpmHeader::text(std::uint32_t tag) const {
  const auto entry = find(tag);
  if (!entry || (entry->type != kString && entry->type != kI18nString)) return {};
  return std::string(text_in(heap_, entry->offset).value_or(std::string_view()));
}

std::optional<std::string_view> RpmHeader::text_at(std::uint32_t tag, std::uint64_t index) const {
  const auto entry = find(tag);
  if (!entry || entry->type != kStringArray || index >= entry->count) return std::nullopt;
  std::uint64_t offset = entry->offset;
  for (std::uint64_t i = 0;; ++i) {
    const auto text = text_in(heap_, offset);
    if (!text || i == index) return text;
    offset += text->size() + 1;
  }
}

std::optional<std::uint32_t> RpmHeader::number_at(std::uint32_t tag, std::uint64_t index) const {
  const auto entry = find(tag);
  if (!entry || entry->type != kInt32 || index >= entry->count) return std::nullopt;
  const std::uint64_t offset = entry->offset + index * 4;
  if (offset + 4 > heap_.size()) return std::nullopt;
  return number(heap_, static_cast<std::size_t>(offset));
}

std::optional<std::string> RpmHeader::file(std::uint64_t index) const {
  if (const auto old = text_at(kOldFileNames, index)) return std::string(*old);
  const auto name = text_at(kBaseNames, index);
  const auto folder = number_at(kDirIndexes, index);
  if (!name || !folder) return std::nullopt;
  const auto path = text_at(kDirNames, *folder);
  if (!path) return std::nullopt;
  return std::string(*path) + std::string(*name);
}

std::string RpmHeader::version() const {
  std::string out = text(kVersion);
  if (out.empty()) return out;
  if (const auto epoch = number_at(kEpoch, 0); epoch && *epoch != 0) out = std::to_string(*epoch) + ":" + out;
  if (const std::string release = text(kRelease); !release.empty()) out += "-" + release;
  return out;
}

}  // namespace kshim::packages
