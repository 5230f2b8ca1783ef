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

struct ContextDeleter {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

}  // namespace

struct Decompressor::State {
  std::unique_ptr<ZSTD_DCtx, ContextDeleter> context{ZSTD_createDCtx()};
  std::unique_ptr<std::byte[]> buffer;
  std::size_t capacity = 0;

  std::byte* room(std::size_t size) {
    if (size > capacity) {
      buffer.reset();
      buffer = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity = size;
    }
    return buffer.get();
  }

  Result<Bytes> zstd(const Image& image, std::size_t size) {
    std::byte* out = room(size);
    const std::size_t got =
        ZSTD_decompressDCtx(context.get(), out, size, image.payload.data(), image.payload.size());
    if (ZSTD_isError(got) != 0 || got != size) return Error{Errc::corrupt_payload, image.offset};
    return Bytes(out, size);
  }

  Result<Bytes> lz4(const Image& image, std::size_t size) {
    if (image.payload.size() > INT_MAX || size > INT_MAX) return Error{Errc::too_large, image.offset};
    std::byte* out = room(size);
    const int got =
        LZ4_decompress_safe(reinterpret_cast<const char*>(image.payload.data()), reinterpret_cast<char*>(out),
                            static_cast<int>(image.payload.size()), static_cast<int>(size));
    if (got < 0 || static_cast<std::size_t>(got) != size) return Error{Errc::corrupt_payload, image.offset};
    return Bytes(out, size);
  }
};

Decompressor::Decompressor() : state_(std::make_unique<State>()) {}
Decompressor::~Decompressor() = default;

Result<Bytes> Decompressor::run(const Image& image, std::uint64_t ceiling) {
  if (image.compression == Compression::none) {
    if (image.payload.size() > ceiling) return Error{Errc::too_large, image.offset};
    return image.payload;
  }
  if (image.compression == Compression::unknown) return Error{Errc::unknown_compression, image.offset};
  // The size is the file's claim: nothing is allocated before the ceiling has been asked.
  if (image.uncompressed_size > ceiling) return Error{Errc::too_large, image.offset};
  if (image.uncompressed_size == 0) return Error{Errc::bad_header, image.offset};
  if (image.uncompressed_size > most_from(image.compression, image.payload.size()))
    return Error{Errc::corrupt_payload, image.offset};
  const auto size = static_cast<std::size_t>(image.uncompressed_size);
  return image.compression == Compression::zstd ? state_->zstd(image, size) : state_->lz4(image, size);
}

Result<std::uint64_t> decompress(const Image& image, std::vector<std::byte>& out, std::uint64_t ceiling) {
  Decompressor decompressor;
  const auto clear = decompressor.run(image, ceiling);
  if (!clear) {
    out.clear();
    return clear.error();
  }
  out.assign(clear->begin(), clear->end());
  return std::uint64_t{out.size()};
}

}  // namespace kshim::image
