// SPDX-License-Identifier: Apache-2.0
// Composes byte-exact fatbins, whole or broken, in test code. Layout: docs/internals/image-format.md.
// Compressed payloads are given as compressed bytes, so that this header needs neither zstd nor LZ4.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "byte_buffer.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/image.h"

namespace kshim::test {

/// Offsets of fields in an entry header, for put().
inline constexpr std::size_t kEntryKind = 0;
inline constexpr std::size_t kEntryVersion = 2;
inline constexpr std::size_t kEntryHeaderSize = 4;
inline constexpr std::size_t kEntryPayloadSize = 8;
inline constexpr std::size_t kEntryCompressedSize = 16;
inline constexpr std::size_t kEntryMinor = 24;
inline constexpr std::size_t kEntrySm = 28;
inline constexpr std::size_t kEntryFlags = 40;
inline constexpr std::size_t kEntryUncompressedSize = 56;
inline constexpr std::size_t kFatbinHeader = 16;

struct EntrySpec {
  image::ImageKind kind = image::ImageKind::cubin;
  image::Arch arch;
  image::Version isa{};  ///< of PTX
  Buffer payload{};      ///< as stored
  image::Compression compression = image::Compression::none;
  std::uint64_t uncompressed_size = 0;  ///< of a compressed payload
  std::uint32_t header_size = 64;       ///< longer ones are filled with 0xee, which nobody may read
  std::uint64_t extra_flags = 0;
};

class FatbinBuilder {
 public:
  FatbinBuilder& add(EntrySpec entry) {
    entries_.push_back(std::move(entry));
    return *this;
  }
  FatbinBuilder& cubin(image::Arch arch, Buffer payload = to_buffer("cubin")) {
    return add({.kind = image::ImageKind::cubin, .arch = arch, .payload = std::move(payload)});
  }
  FatbinBuilder& ptx(image::Arch arch, image::Version isa, std::string_view text = ".version") {
    return add({.kind = image::ImageKind::ptx, .arch = arch, .isa = isa, .payload = to_buffer(text)});
  }
  FatbinBuilder& ltoir(image::Arch arch) {
    return add({.kind = image::ImageKind::ltoir, .arch = arch, .payload = to_buffer("ltoir")});
  }

  Buffer build() const {
    Buffer entries;
    for (const EntrySpec& entry : entries_) append_entry(entries, entry);
    Buffer out;
    append(out, image::kFatbinMagic);
    append(out, std::uint16_t{1});
    append(out, std::uint16_t{16});
    append(out, std::uint64_t{entries.size()});
    append(out, entries);
    return out;
  }

 private:
  static void append_entry(Buffer& out, const EntrySpec& entry) {
    const std::size_t start = out.size();
    const bool packed = entry.compression != image::Compression::none;
    Buffer payload = entry.payload;
    const auto stored = static_cast<std::uint32_t>(payload.size());
    pad_to(payload, 8);
    constexpr std::uint16_t kKinds[] = {1, 2, 8, 0x80};  // in the order of ImageKind
    append(out, kKinds[static_cast<std::size_t>(entry.kind)]);
    append(out, std::uint16_t{0x0101});
    append(out, entry.header_size);
    append(out, std::uint64_t{payload.size()});
    append(out, packed ? stored : 0U);
    append(out, 0U);
    const bool tile = entry.kind == image::ImageKind::tileir;
    append(out, tile ? std::uint16_t{0} : entry.isa.minor);
    append(out, tile ? static_cast<std::uint16_t>(entry.isa.major << 8U | entry.isa.minor) : entry.isa.major);
    append(out, static_cast<std::uint32_t>(entry.arch.cc.number()));
    append(out, std::uint64_t{0});
    append(out, flags_of(entry));
    append(out, std::uint64_t{0});
    append(out, packed ? entry.uncompressed_size : std::uint64_t{0});
    while (out.size() < start + entry.header_size) out.push_back(std::byte{0xee});
    append(out, payload);
  }
  static std::uint64_t flags_of(const EntrySpec& entry) {
    std::uint64_t flags = 0x11 | entry.extra_flags;
    if (entry.arch.suffix == image::Suffix::a) flags |= 0x100000;
    if (entry.arch.suffix == image::Suffix::f) flags |= 0x200000;
    if (entry.compression == image::Compression::lz4) flags |= 0x2000;
    if (entry.compression == image::Compression::zstd) flags |= 0x8000;
    return flags;
  }

  std::vector<EntrySpec> entries_;
};

inline constexpr image::Arch arch_of(unsigned number, image::Suffix suffix = image::Suffix::none) {
  return {image::ComputeCapability::from_number(number), suffix};
}

}  // namespace kshim::test
