// SPDX-License-Identifier: Apache-2.0
#include "query/payload.h"

#include <zstd.h>

#include <cstdlib>

#include "kshim/image/payload.h"

// libzstd refers to these weakly, for a tracer; a program's own are none of this library's
// business.
extern "C" {
__attribute__((visibility("hidden"))) unsigned long long ZSTD_trace_decompress_begin(
    const ZSTD_DCtx* /*context*/) {
  return 0;
}
__attribute__((visibility("hidden"))) void ZSTD_trace_decompress_end(unsigned long long /*context*/,
                                                                     const void* /*trace*/) {}
}

namespace kshim::query {
namespace {

// Of one question: libcublasLt 13.0 has 2.3 GB in the clear.
constexpr std::uint64_t kMaxClear = std::uint64_t{32} << 30U;

Reason reason_of(Errc code) noexcept {
  switch (code) {
    case Errc::too_large:
      return Reason::too_large;
    case Errc::unknown_compression:
      return Reason::unknown_compression;
    default:
      return Reason::damaged;
  }
}

}  // namespace

Payload::~Payload() {
  ZSTD_freeDCtx(context_);
  std::free(buffer_);
}

Reason Payload::make_room(std::size_t size) noexcept {
  if (context_ == nullptr) context_ = ZSTD_createDCtx();
  if (context_ == nullptr) return Reason::no_memory;
  if (size <= capacity_) return Reason::none;
  std::free(buffer_);
  buffer_ = static_cast<std::byte*>(std::malloc(size));
  capacity_ = buffer_ != nullptr ? size : 0;
  return buffer_ != nullptr ? Reason::none : Reason::no_memory;
}

Reason Payload::read(SourceFile& file, const CodeImage& image, Bytes& out, std::uint64_t most) noexcept {
  if (const Reason reason = file.open(); reason != Reason::none) return reason;
  file.drop(from_, size_);
  from_ = image.offset;
  size_ = image.stored;
  const auto stored = slice(file.bytes(), image.offset, image.stored);
  if (!stored) return Reason::changed;
  image::Image entry;
  entry.compression = image.compression;
  entry.uncompressed_size = image.clear;
  entry.payload = *stored;
  const auto size = image::clear_size(entry);
  if (!size) return reason_of(size.error().code);
  const bool whole = most >= *size;
  total_ += whole ? *size : most;
  if (total_ > kMaxClear) return Reason::too_large;
  const bool part = !whole && image.compression == image::Compression::none;
  if (!file.fetch(image.offset, part ? most : image.stored)) return file.trouble();
  if (image.compression == image::Compression::none) {
    out = whole ? *stored : stored->first(static_cast<std::size_t>(most));
    return Reason::none;
  }
  const auto room = static_cast<std::size_t>(whole ? *size : most);
  if (const Reason reason = make_room(room); reason != Reason::none) return reason;
  const auto clear = whole ? image::decompress_into(entry, {buffer_, room}, context_)
                           : image::decompress_start(entry, {buffer_, room}, context_);
  if (!clear) return reason_of(clear.error().code);
  out = *clear;
  return Reason::none;
}

}  // namespace kshim::query
