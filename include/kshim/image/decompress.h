// SPDX-License-Identifier: Apache-2.0
// Decompresses payloads. Uses the heap, libzstd and liblz4: for the command and the simulator, never for the
// shim (target kshim::image_payload).
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "kshim/image/payload.h"

namespace kshim::image {

/// Decompresses payloads one after another and reuses buffer and context.
class Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  /// The decompressed payload: the image's own bytes if they are not compressed, else a view that is valid
  /// until the next call.
  Result<Bytes> run(const Image& image, std::uint64_t ceiling = kPayloadCeiling);

  /// The same of its first bytes, at most `size`.
  Result<Bytes> start(const Image& image, std::size_t size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The payload, decompressed if need be. A stored payload is copied. On error `out` is empty.
Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out,
                                 std::uint64_t ceiling = kPayloadCeiling);

}  // namespace kshim::image
