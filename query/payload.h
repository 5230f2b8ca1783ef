// SPDX-License-Identifier: Apache-2.0
// Payloads of images in the clear, one at a time.
#pragma once
#include "query/device_code.h"

struct ZSTD_DCtx_s;

namespace kshim::query {

class Payload {
 public:
  Payload() = default;
  ~Payload();
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  /// All of it, or its first `most` bytes. `out` is valid until the next call. Reason::unknown_compression
  /// says nothing against the file.
  Reason read(SourceFile& file, const CodeImage& image, Bytes& out, std::uint64_t most = UINT64_MAX) noexcept;

 private:
  Reason make_room(std::size_t size) noexcept;
  ZSTD_DCtx_s* context_ = nullptr;
  std::byte* buffer_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t from_ = 0, size_ = 0;  ///< of the file, whose memory the last call took
};

}  // namespace kshim::query
