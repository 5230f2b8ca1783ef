// SPDX-License-Identifier: Apache-2.0
// Fatbins: the container nvcc puts device code into. Layout and evidence: docs/internals/image-format.md.
// Listing images touches entry headers only, never payloads. No heap, no exceptions.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "kshim/image/image.h"

namespace kshim::image {

constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr std::uint32_t kWrapperMagic = 0x466243B1;

/// `.nvFatBinSegment` holds these, and the argument of cuLibraryLoadData is one. In memory the pointers are
/// addresses.
struct FatbinWrapper {
  std::uint32_t magic;
  std::uint32_t version;    ///< 1, or 2 when `prelinked` is an array of the relocatable parts' fatbins
  std::uint64_t fatbin;     ///< address of a fatbin header
  std::uint64_t prelinked;  ///< version 2: address of a null-terminated array of fatbin addresses; else 0 or
                            ///< a file name
};
static_assert(sizeof(FatbinWrapper) == 24);

/// Walks one fatbin. `open` checks the header; `next` returns entries, and Errc::not_found at the end.
class FatbinReader {
 public:
  FatbinReader() = default;
  static Result<FatbinReader> open(Bytes bytes) noexcept;
  /// The same, but for a truncated fatbin next() returns the complete entries before the error.
  static Result<FatbinReader> open_damaged(Bytes bytes) noexcept;
  /// Errc::not_found: no more entries (the regular end). Anything else: the fatbin is damaged at
  /// error().offset.
  Result<Image> next() noexcept;
  /// Header and all entries, in bytes, as the header says: where the next fatbin of a section may begin.
  std::uint64_t size() const noexcept { return size_; }
  /// The kind in the header of the last entry, for messages about Errc::unknown_kind.
  std::uint16_t kind() const noexcept { return kind_; }
  /// End of the last entry that was whole, in bytes: after an error, where something else may begin.
  std::uint64_t whole() const noexcept { return whole_; }

 private:
  Bytes bytes_;
  std::uint64_t cursor_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t whole_ = 0;
  std::uint16_t kind_ = 0;
};

}  // namespace kshim::image
