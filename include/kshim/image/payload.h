// SPDX-License-Identifier: Apache-2.0
// Payloads in the clear, into memory of the caller's: no heap of its own but zstd's context. Links libzstd
// and liblz4, so the shim leaves it out.
#pragma once
#include <cstdint>
#include <span>

#include "kshim/image/image.h"

struct ZSTD_DCtx_s;

namespace kshim::image {

/// No real image comes near it: the largest cubin seen is under 200 MB.
constexpr std::uint64_t kPayloadCeiling = 1ULL << 30;

/// Drivers read Zstandard payloads from CUDA 12.4 on (onnxruntime pull request 26307; RAPIDS installation
/// guide).
constexpr Version kFirstZstdDriver{12, 4};
/// Whether a driver for this CUDA version reads such payloads; an unknown version is the newest.
constexpr bool driver_reads(Compression compression, Version driver) noexcept {
  return compression != Compression::zstd || !driver.known() || driver >= kFirstZstdDriver;
}

/// Bytes of the payload in the clear. The size is the file's claim: an error where it is above the ceiling or
/// more than so many stored bytes can become, so that nothing is allocated for it.
Result<std::uint64_t> clear_size(const Image& image, std::uint64_t ceiling = kPayloadCeiling) noexcept;

/// Decompresses into `out`, of clear_size() bytes. `context` is for zstd alone.
Result<Bytes> decompress_into(const Image& image, std::span<std::byte> out, ZSTD_DCtx_s* context) noexcept;

}  // namespace kshim::image
