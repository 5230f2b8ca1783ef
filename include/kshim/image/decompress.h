// SPDX-License-Identifier: Apache-2.0
// Payloads in the clear. Uses the heap, libzstd and liblz4: for the command and the simulator, never for the
// shim (target kshim::image_payload).
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "kshim/image/image.h"

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

/// Decompresses one payload after the other, into memory and with a context that are kept between them.
class Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  /// The payload in the clear: where it is stored, the image's own bytes, else a view that is valid until the
  /// next call.
  Result<Bytes> run(const Image& image, std::uint64_t ceiling = kPayloadCeiling);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The payload, decompressed if need be. A stored payload is copied. On error `out` is empty.
Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out,
                                 std::uint64_t ceiling = kPayloadCeiling);

}  // namespace kshim::image
