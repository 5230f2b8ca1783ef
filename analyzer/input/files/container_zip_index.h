// SPDX-License-Identifier: Apache-2.0
// The directory at the end of a zip. Read here and not by libarchive: names stay bytes, members are
// independent of each other (a broken one hides nothing, threads can share), and what overlaps is seen. Views
// only, nothing is stored.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::scan {

struct ZipEntry {
  std::string_view name;
  std::uint64_t offset = 0;  ///< of its local header
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflate
  bool encrypted = false;
  bool file = true;  ///< neither a folder nor a symbolic link
};

class ZipIndex {
 public:
  ZipIndex() = default;
  /// Errc::not_found: no directory, as in a zip that was cut off.
  static Result<ZipIndex> open(Bytes bytes) noexcept;
  /// Errc::not_found: the regular end. Anything else: damaged at error().offset, and nothing follows.
  Result<ZipEntry> next() noexcept;
  /// Where the directory goes on, for at().
  std::uint64_t position() const noexcept { return cursor_; }
  Result<ZipEntry> at(std::uint64_t position) const noexcept;
  /// The entry's compressed bytes.
  Result<Bytes> data(const ZipEntry& entry) const noexcept;

 private:
  bool locate(std::uint64_t end_record) noexcept;

  Bytes bytes_;
  std::uint64_t base_ = 0;    // what stands before the zip: offsets count from here
  std::uint64_t cursor_ = 0;  // in the directory
  std::uint64_t end_ = 0;     // of the directory
};

}  // namespace kshim::scan
