// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/decompress.h"

#include <zstd.h>

#include <algorithm>

namespace kshim::image {
namespace {

struct ContextDeleter {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

}  // namespace

struct Decompressor::State {
  std::unique_ptr<ZSTD_DCtx, ContextDeleter> context{ZSTD_createDCtx()};
  std::unique_ptr<std::byte[]> buffer;
  std::size_t capacity = 0;

  std::span<std::byte> room(std::size_t size) {
    if (size > capacity) {
      buffer.reset();
      buffer = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity = size;
    }
    return {buffer.get(), size};
  }
};

Decompressor::Decompressor() : state_(std::make_unique<State>()) {}
Decompressor::~Decompressor() = default;

Result<Bytes> Decompressor::run(const Image& image, std::uint64_t ceiling) {
  const auto size = clear_size(image, ceiling);
  if (!size) return size.error();
  if (image.compression == Compression::none) return image.payload;
  return decompress_into(image, state_->room(static_cast<std::size_t>(*size)), state_->context.get());
}

Result<Bytes> Decompressor::start(const Image& image, std::size_t size) {
  if (image.compression == Compression::none)
    return image.payload.first(std::min(image.payload.size(), size));
  return decompress_start(image, state_->room(size), state_->context.get());
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
