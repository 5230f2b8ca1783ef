// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/payload.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <climits>

namespace kshim::image {
namespace {

/// The largest size that `stored` bytes can decompress to: an LZ4 length byte stands for at most 255 bytes
/// (LZ4 block format, "Extensions"), a zstd block of 4 bytes for at most 128 KiB (RFC 8878, 3.1.1.2: RLE
/// block). A claim beyond it is refused before anything is allocated, so that a small file cannot ask for the
/// ceiling again and again.
constexpr std::uint64_t most_from(Compression compression, std::uint64_t stored) noexcept {
  const std::uint64_t each = compression == Compression::lz4 ? 255 : (128 * 1024) / 4;
  return stored > UINT64_MAX / each ? UINT64_MAX : stored * each;
}

}  // namespace

Result<std::uint64_t> clear_size(const Image& image, std::uint64_t ceiling) noexcept {
  if (image.compression == Compression::unknown) return Error{Errc::unknown_compression, image.offset};
  if (image.compression == Compression::none) {
    if (image.payload.size() > ceiling) return Error{Errc::too_large, image.offset};
    return std::uint64_t{image.payload.size()};
  }
  if (image.uncompressed_size > ceiling) return Error{Errc::too_large, image.offset};
  if (image.uncompressed_size == 0) return Error{Errc::bad_header, image.offset};
  if (image.uncompressed_size > most_from(image.compression, image.payload.size()))
    return Error{Errc::corrupt_payload, image.offset};
  return image.uncompressed_size;
}

Result<Bytes> decompress_into(const Image& image, std::span<std::byte> out, ZSTD_DCtx_s* context) noexcept {
  if (image.compression == Compression::zstd) {
    const std::size_t got =
        ZSTD_decompressDCtx(context, out.data(), out.size(), image.payload.data(), image.payload.size());
    if (ZSTD_isError(got) != 0 || got != out.size()) return Error{Errc::corrupt_payload, image.offset};
    return Bytes(out);
  }
  if (image.compression != Compression::lz4) return Error{Errc::unknown_compression, image.offset};
  if (image.payload.size() > INT_MAX || out.size() > INT_MAX) return Error{Errc::too_large, image.offset};
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(image.payload.data()),
                                      reinterpret_cast<char*>(out.data()),
                                      static_cast<int>(image.payload.size()), static_cast<int>(out.size()));
  if (got < 0 || static_cast<std::size_t>(got) != out.size())
    return Error{Errc::corrupt_payload, image.offset};
  return Bytes(out);
}

Result<Bytes> decompress_start(const Image& image, std::span<std::byte> out, ZSTD_DCtx_s* context) noexcept {
  const Bytes stored = image.payload;
  switch (image.compression) {
    case Compression::none:
      return stored.first(std::min(stored.size(), out.size()));
    case Compression::lz4: {
      if (stored.size() > INT_MAX || out.size() > INT_MAX) return Error{Errc::too_large, image.offset};
      const int room = static_cast<int>(out.size());
      const int got = LZ4_decompress_safe_partial(reinterpret_cast<const char*>(stored.data()),
                                                  reinterpret_cast<char*>(out.data()),
                                                  static_cast<int>(stored.size()), room, room);
      if (got < 0) return Error{Errc::corrupt_payload, image.offset};
      return Bytes(out).first(static_cast<std::size_t>(got));
    }
    case Compression::zstd: {
      ZSTD_inBuffer from{stored.data(), stored.size(), 0};
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
      while (to.pos < to.size) {
        const std::size_t before = from.pos + to.pos;
        const std::size_t more = ZSTD_decompressStream(context, &to, &from);
        if (ZSTD_isError(more) != 0) return Error{Errc::corrupt_payload, image.offset};
        if (more == 0 || from.pos + to.pos == before) break;
      }
      return Bytes(out).first(to.pos);
    }
    case Compression::unknown:
      break;
  }
  return Error{Errc::unknown_compression, image.offset};
}

}  // namespace kshim::image
