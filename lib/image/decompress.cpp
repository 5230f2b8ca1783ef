// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace kshim::image {
namespace {

Result<std::uint64_t> unpack_zstd(const Image& image, std::vector<std::byte>& out) {
  const std::size_t size =
      ZSTD_decompress(out.data(), out.size(), image.payload.data(), image.payload.size());
  if (ZSTD_isError(size) != 0 || size != out.size()) return Error{Errc::corrupt_payload, image.offset};
  return std::uint64_t{size};
}

Result<std::uint64_t> unpack_lz4(const Image& image, std::vector<std::byte>& out) {
  if (image.payload.size() > INT_MAX || out.size() > INT_MAX) return Error{Errc::too_large, image.offset};
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(image.payload.data()),
                                       reinterpret_cast<char*>(out.data()),
                                       static_cast<int>(image.payload.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<std::size_t>(size) != out.size())
    return Error{Errc::corrupt_payload, image.offset};
  return static_cast<std::uint64_t>(size);
}

Result<std::uint64_t> unpack(const Image& image, std::vector<std::byte>& out, std::uint64_t ceiling) {
  if (image.compression == Compression::none) {
    if (image.payload.size() > ceiling) return Error{Errc::too_large, image.offset};
    out.assign(image.payload.begin(), image.payload.end());
    return std::uint64_t{out.size()};
  }
  // The size is the file's claim: nothing is allocated before the ceiling has been asked.
  if (image.uncompressed_size > ceiling) return Error{Errc::too_large, image.offset};
  if (image.uncompressed_size == 0) return Error{Errc::bad_header, image.offset};
  switch (image.compression) {
    case Compression::zstd:
      out.resize(static_cast<std::size_t>(image.uncompressed_size));
      return unpack_zstd(image, out);
    case Compression::lz4:
      out.resize(static_cast<std::size_t>(image.uncompressed_size));
      return unpack_lz4(image, out);
    default:
      return Error{Errc::unknown_compression, image.offset};
  }
}

}  // namespace

Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out, std::uint64_t ceiling) {
  const auto size = unpack(image, out, ceiling);
  if (!size) out.clear();
  return size;
}

}  // namespace kshim::image
