// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <climits>

namespace kshim::image {
namespace {

/// The most that `stored` bytes can become, by the formats: an LZ4 length byte stands for at most 255 bytes
/// (LZ4 block format, "Extensions"), a zstd block of 4 bytes for at most 128 KiB (RFC 8878, 3.1.1.2: RLE
/// block). A claim beyond it is refused before anything is allocated, so that a small file cannot ask for the
/// ceiling again and again.
constexpr std::uint64_t most_from(Compression compression, std::uint64_t stored) noexcept {
  const std::uint64_t each = compression == Compression::lz4 ? 255 : (128 * 1024) / 4;
  return stored > UINT64_MAX / each ? UINT64_MAX : stored * each;
}

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
  if (image.compression == Compression::unknown) return Error{Errc::unknown_compression, image.offset};
  // The size is the file's claim: nothing is allocated before the ceiling has been asked.
  if (image.uncompressed_size > ceiling) return Error{Errc::too_large, image.offset};
  if (image.uncompressed_size == 0) return Error{Errc::bad_header, image.offset};
  if (image.uncompressed_size > most_from(image.compression, image.payload.size()))
    return Error{Errc::corrupt_payload, image.offset};
  out.resize(static_cast<std::size_t>(image.uncompressed_size));
  return image.compression == Compression::zstd ? unpack_zstd(image, out) : unpack_lz4(image, out);
}

}  // namespace

Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out, std::uint64_t ceiling) {
  const auto size = unpack(image, out, ceiling);
  if (!size) out.clear();
  return size;
}

}  // namespace kshim::image
