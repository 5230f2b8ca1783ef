// SPDX-License-Identifier: Apache-2.0
// Payloads in the clear. Uses the heap, libzstd and liblz4: for the command and the simulator, never for the
// shim (target kshim::image_payload).
#pragma once
#include <cstddef>
#include <vector>

#include "kshim/image/image.h"

namespace kshim::image {

/// No real image comes near it: the largest cubin seen is under 200 MB.
constexpr std::uint64_t kPayloadCeiling = 1ULL << 30;

/// The payload, decompressed if need be. A stored payload is copied. On error `out` is empty.
Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out,
                                 std::uint64_t ceiling = kPayloadCeiling);

}  // namespace kshim::image
