// SPDX-License-Identifier: Apache-2.0
// A device image as its container describes it, and the identification of blobs. Views only: an Image is
// valid as long as the bytes that it was read from.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "kshim/image/arch.h"

namespace kshim::image {

enum class Compression : std::uint8_t { none, lz4, zstd, unknown };

struct Image {
  ImageKind kind = ImageKind::cubin;
  Arch arch;
  Version isa;  ///< PTX ISA, bytecode version of Tile IR; {0,0} for cubins and LTO-IR
  Compression compression = Compression::none;
  bool debug = false;
  std::uint64_t flags = 0;              ///< of the fatbin entry, as found
  std::uint64_t offset = 0;             ///< of the entry, bytes from the start of its container
  std::uint64_t uncompressed_size = 0;  ///< bytes
  Bytes payload;                        ///< as stored, padding cut off where the header says so
};

enum class BlobKind : std::uint8_t {
  unknown,
  fatbin,
  fatbin_wrapper,
  cubin,
  ptx,
  ltoir,
  host_elf,
  archive,
  zip
};
/// By the first bytes alone; never reads more than 64 of them but for PTX text, where leading comments are
/// skipped.
BlobKind identify(Bytes bytes) noexcept;

}  // namespace kshim::image
