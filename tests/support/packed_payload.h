// SPDX-License-Identifier: Apache-2.0
// Payloads as fatbins hold them, compressed by the libraries that NVIDIA's tools use too.
#pragma once
#include <lz4.h>
#include <zstd.h>

#include <stdexcept>

#include "byte_buffer.h"
#include "kshim/image/image.h"

namespace kshim::test {

inline Buffer pack(image::Compression compression, const Buffer& plain) {
  if (compression == image::Compression::zstd) {
    Buffer out(ZSTD_compressBound(plain.size()));
    const std::size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3);
    if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
    out.resize(size);
    return out;
  }
  if (compression != image::Compression::lz4) return plain;
  Buffer out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
  const int size =
      LZ4_compress_default(reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(out.data()),
                           static_cast<int>(plain.size()), static_cast<int>(out.size()));
  if (size <= 0) throw std::runtime_error("LZ4_compress_default failed");
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace kshim::test
