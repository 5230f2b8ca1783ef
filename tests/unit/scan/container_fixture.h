// SPDX-License-Identifier: Apache-2.0
// Containers made in memory: by libarchive where they are sound, by hand where every field is to be chosen.
#pragma once
#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kshim/base/bytes.h"

namespace kshim::test {

using File = std::pair<std::string, std::string>;  // name, contents
using Files = std::vector<File>;

enum class Packing : std::uint8_t { tar, tar_gz, tar_bz2, tar_xz, tar_zst, zip, zip_stored };

/// What libarchive writes. Its zips are streamed ones: sizes stand behind the data.
inline std::string pack(Packing packing, const Files& files) {
  std::size_t room = 1U << 20;
  for (const auto& [name, contents] : files) room += name.size() + contents.size() + 8192;
  std::string out(room, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  const bool zip = packing == Packing::zip || packing == Packing::zip_stored;
  if (zip)
    archive_write_set_format_zip(writer);
  else
    archive_write_set_format_pax_restricted(writer);
  if (packing == Packing::zip_stored) archive_write_zip_set_compression_store(writer);
  if (packing == Packing::tar_gz) archive_write_add_filter_gzip(writer);
  if (packing == Packing::tar_bz2) archive_write_add_filter_bzip2(writer);
  if (packing == Packing::tar_xz) archive_write_add_filter_xz(writer);
  if (packing == Packing::tar_zst) archive_write_add_filter_zstd(writer);
  archive_write_set_bytes_per_block(writer, 0);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const auto& [name, contents] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, name.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<std::int64_t>(contents.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, contents.data(), contents.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// One directory row of a zip, with its local header and data, each field as it is to be written.
struct ZipMember {
  std::string name;
  std::string data = {};  // as it lies in the file
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;             // uncompressed
  std::uint64_t compressed_size = 0;  // as claimed
  bool zip64 = false;                 // sizes and offset in the directory's extra field
  std::uint32_t attributes = 0;
  std::uint64_t offset = UINT64_MAX;  // as claimed; else where it is
};

inline ZipMember stored(std::string name, std::string contents) {
  ZipMember member{.name = std::move(name), .crc = crc32_of(contents), .size = contents.size()};
  member.compressed_size = contents.size();
  member.data = std::move(contents);
  return member;
}

inline void put_sizes(std::string& out, const ZipMember& member) {
  put(out, member.zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(member.compressed_size));
  put(out, member.zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(member.size));
}

inline std::string build_zip(const std::vector<ZipMember>& members, std::string out = {}) {
  const std::size_t start = out.size();
  std::string directory;
  for (const ZipMember& member : members) {
    const std::uint64_t offset = member.offset == UINT64_MAX ? out.size() - start : member.offset;
    if (member.offset == UINT64_MAX) {
      put(out, 0x04034b50U);
      for (const std::uint16_t field : {std::uint16_t{45}, member.flags, member.method}) put(out, field);
      put(out, std::uint32_t{0});
      put(out, member.crc);
      put_sizes(out, member);
      put(out, static_cast<std::uint16_t>(member.name.size()));
      put(out, std::uint16_t{0});
      out += member.name + member.data;
    }
    put(directory, 0x02014b50U);
    for (const std::uint16_t field :
         {std::uint16_t{3U << 8U | 45}, std::uint16_t{45}, member.flags, member.method})
      put(directory, field);
    put(directory, std::uint32_t{0});
    put(directory, member.crc);
    put_sizes(directory, member);
    put(directory, static_cast<std::uint16_t>(member.name.size()));
    put(directory, static_cast<std::uint16_t>(member.zip64 ? 28 : 0));
    directory.append(6, '\0');  // comment, disk, internal attributes
    put(directory, member.attributes);
    put(directory, member.zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(offset));
    directory += member.name;
    if (!member.zip64) continue;
    put(directory, std::uint16_t{1});
    put(directory, std::uint16_t{24});
    for (const std::uint64_t field : {member.size, member.compressed_size, offset}) put(directory, field);
  }
  const std::size_t directory_offset = out.size() - start;
  out += directory;
  put(out, 0x06054b50U);
  put(out, std::uint32_t{0});
  for (int twice = 0; twice < 2; ++twice) put(out, static_cast<std::uint16_t>(members.size()));
  put(out, static_cast<std::uint32_t>(directory.size()));
  put(out, static_cast<std::uint32_t>(directory_offset));
  put(out, std::uint16_t{0});
  return out;
}

/// The compressed bytes that libarchive makes of `contents`, as a member whose fields can then be bent.
inline ZipMember deflated(std::string name, const std::string& contents) {
  const std::string zip = pack(Packing::zip, {{"x", contents}});
  const std::size_t directory = zip.find("PK\1\2");
  const auto at = [&](std::size_t offset) {
    return read_le<std::uint32_t>(bytes_of(zip), directory + offset).value_or(0);
  };
  const std::size_t extra = read_le<std::uint16_t>(bytes_of(zip), 28).value_or(0);
  ZipMember member{.name = std::move(name), .method = 8, .crc = at(16), .size = at(24)};
  member.compressed_size = at(20);
  member.data = zip.substr(30 + 1 + extra, at(20));
  return member;
}

inline std::string ar_header(std::string name, const std::string& size) {
  const auto padded = [](std::string text, std::size_t width) {
    text.resize(width, ' ');
    return text;
  };
  return padded(std::move(name), 16) + padded("0", 12) + padded("0", 6) + padded("0", 6) + padded("644", 8) +
         padded(size, 10) + "`\n";
}

inline std::string ar_member(const std::string& name, const std::string& contents) {
  return ar_header(name, std::to_string(contents.size())) + contents + (contents.size() % 2 != 0 ? "\n" : "");
}

}  // namespace kshim::test
