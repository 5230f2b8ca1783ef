// SPDX-License-Identifier: Apache-2.0
// Decompresses payloads into the caller's memory; only zstd's context uses the heap. Needs libzstd and
// liblz4, so the shim does not link it.
#pragma once
#include <cstdint>
#include <span>

#include "kshim/image/image.h"

struct ZSTD_DCtx_s;

namespace kshim::image {

/// The limit in bytes. The largest known cubin has less than 200 MB.
constexpr std::uint64_t kPayloadCeiling = 1ULL << 30;

/// Drivers read Zstandard payloads from CUDA 12.4 on (onnxruntime pull request 26307; RAPIDS installation
/// guide).
constexpr Version kFirstZstdDriver{12, 4};
/// Whether a driver for this CUDA version reads such payloads; an unknown version is the newest.
constexpr bool driver_reads(Compression compression, Version driver) noexcept {
  return compression != Compression::zstd || !driver.known() || driver >= kFirstZstdDriver;
}

/// The decompressed size in bytes, as the file states it. An error if it exceeds the limit, or what the
/// stored bytes can decompress to, so that callers do not allocate it.
Result<std::uint64_t> clear_size(const Image& image, std::uint64_t ceiling = kPayloadCeiling) noexcept;

/// How much of an image's start is worth a try, before all of it is read: LZ4 stops where it is told to, zstd
/// at the end of a block, which has so many bytes.
constexpr std::size_t kLz4Start = std::size_t{4} << 10;
constexpr std::size_t kZstdBlock = std::size_t{128} << 10;

/// The first bytes of the payload, in the clear: as many as `out` has room for, and fewer where it ends.
Result<Bytes> decompress_start(const Image& image, std::span<std::byte> out, ZSTD_DCtx_s* context) noexcept;

/// Decompresses into `out`, of clear_size() bytes. `context` is for zstd alone.
Result<Bytes> decompress_into(const Image& image, std::span<std::byte> out, ZSTD_DCtx_s* context) noexcept;

}  // namespace kshim::image
