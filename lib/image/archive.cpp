// SPDX-License-Identifier: Apache-2.0
// Header, 60 bytes of text: name 16, date 12, uid 6, gid 6, mode 8, size 10, then "`\n". Data begin at even
// offsets. Names: "NAME/" (GNU), "NAME" padded (BSD, Windows), "/N" = at N in the table "//" (ended by "/\n",
// or a NUL on Windows), "#1/N" = the first N bytes of the data.
#include "kshim/image/archive.h"

namespace kshim::image {
namespace {

constexpr std::uint64_t kHeaderSize = 60;
constexpr std::uint64_t kNameSize = 16;
constexpr std::uint64_t kSizeAt = 48;
constexpr std::uint64_t kSizeSize = 10;
constexpr std::uint64_t kEndAt = 58;

std::string_view without_padding(std::string_view text) noexcept {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Digits to the end of `text`, which a field's width keeps far from overflow (at most 16).
bool parse_number(std::string_view text, std::uint64_t& out) noexcept {
  if (text.empty()) return false;
  out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

constexpr std::uint64_t padded(std::uint64_t offset) noexcept { return offset + offset % 2; }

bool is_symbol_table(std::string_view name) noexcept {
  return name == "/" || name == "/SYM64/" || name == "/<ECSYMBOLS>/" || name == "__.SYMDEF" ||
         name == "__.SYMDEF/" || name == "__.SYMDEF SORTED" || name == "__.SYMDEF_64" ||
         name == "__.SYMDEF_64 SORTED";
}

}  // namespace

struct ArchiveReader::Entry {
  std::string_view field;  // the name field without its padding
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

Result<ArchiveReader> ArchiveReader::open(Bytes bytes) noexcept {
  const auto magic = slice(bytes, 0, kArchiveMagic.size());
  if (!magic) return magic.error();
  ArchiveReader reader;
  if (text_of(*magic) != kArchiveMagic) return Error{Errc::bad_magic, 0};
  reader.bytes_ = bytes;
  reader.cursor_ = magic->size();
  return reader;
}

Result<ArchiveReader::Entry> ArchiveReader::entry_at(std::uint64_t offset) const noexcept {
  const auto header = slice(bytes_, offset, kHeaderSize);
  if (!header) return Error{Errc::truncated, offset};
  const std::string_view text = text_of(*header);
  if (text.substr(kEndAt) != "`\n") return Error{Errc::bad_header, offset};
  Entry entry{without_padding(text.substr(0, kNameSize)), offset, 0};
  if (!parse_number(without_padding(text.substr(kSizeAt, kSizeSize)), entry.size))
    return Error{Errc::bad_header, offset + kSizeAt};
  return entry;
}

/// Steps over a symbol or name table; false when it is cut off.
bool ArchiveReader::read_table(const Entry& entry) noexcept {
  const auto data = slice(bytes_, entry.offset + kHeaderSize, entry.size);
  if (!data) return false;
  if (entry.field == "//") names_ = *data;
  cursor_ = padded(entry.offset + kHeaderSize + entry.size);
  return true;
}

/// The name that "N" stands for.
Result<std::string_view> ArchiveReader::long_name(std::string_view reference) const noexcept {
  std::uint64_t at = 0;
  if (!parse_number(reference, at)) return Error{Errc::bad_header, 0};
  if (at >= names_.size()) return Error{Errc::truncated, 0};
  const std::string_view rest = text_of(names_).substr(static_cast<std::size_t>(at));
  std::string_view name = rest.substr(0, rest.find_first_of(std::string_view("\n\0", 2)));
  if (name.ends_with('/')) name.remove_suffix(1);
  return name;
}

Result<ArchiveMember> ArchiveReader::member_of(const Entry& entry) noexcept {
  ArchiveMember member{entry.field, entry.offset, entry.size, {}};
  name_ = entry.field;
  const auto data = slice(bytes_, entry.offset + kHeaderSize, entry.size);
  if (name_.size() > 1 && name_[0] == '/') {
    const auto name = long_name(name_.substr(1));
    if (!name) return Error{name.error().code, entry.offset};
    name_ = *name;
  } else if (name_.starts_with("#1/")) {
    std::uint64_t length = 0;
    if (!parse_number(name_.substr(3), length)) return Error{Errc::bad_header, entry.offset};
    const auto name = slice(bytes_, entry.offset + kHeaderSize, length);
    if (!name || length > entry.size) return Error{Errc::truncated, entry.offset};
    name_ = text_of(*name);
    name_ = name_.substr(0, name_.find('\0'));  // padded to keep the data aligned
    member.size -= length;
    if (data) member.bytes = data->subspan(static_cast<std::size_t>(length));
  } else if (name_.ends_with('/')) {
    name_.remove_suffix(1);
  }
  member.name = name_;
  if (!data) return Error{Errc::truncated, entry.offset};
  if (member.bytes.empty() && member.size == data->size()) member.bytes = *data;
  return member;
}

Result<ArchiveMember> ArchiveReader::next() noexcept {
  for (;;) {
    const std::uint64_t start = cursor_;
    name_ = {};
    if (start >= bytes_.size()) return Error{Errc::not_found, bytes_.size()};
    cursor_ = bytes_.size();  // a damaged header ends the walk: the position of the next one is unknown
    const auto entry = entry_at(start);
    if (!entry) return entry.error();
    const bool table = entry->field == "//" || is_symbol_table(entry->field);
    // Sizes have ten digits: far from overflow.
    cursor_ = padded(start + kHeaderSize + entry->size);
    if (table) {
      if (read_table(*entry)) continue;
      name_ = entry->field;
      return Error{Errc::truncated, start};
    }
    const auto member = member_of(*entry);
    if (!member || !is_symbol_table(name_)) return member;  // BSD: "#1/20" and "__.SYMDEF SORTED"
  }
}

}  // namespace kshim::image
