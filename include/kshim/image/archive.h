// SPDX-License-Identifier: Apache-2.0
// ar archives: static libraries (GNU, BSD, Windows .lib). No heap, no exceptions.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::image {

constexpr std::string_view kArchiveMagic = "!<arch>\n";
constexpr std::string_view kThinArchiveMagic = "!<thin>\n";  ///< its members are files of their own: not read

struct ArchiveMember {
  std::string_view name;
  std::uint64_t offset = 0;  ///< of its header
  std::uint64_t size = 0;
  Bytes bytes;
};

/// Walks one archive. Symbol tables and name tables are skipped. `next` returns Errc::not_found at the end;
/// any other error is one damaged member, and the walk may go on: a member's size still leads to the next
/// one, and where it does not, the next answer is not_found.
class ArchiveReader {
 public:
  ArchiveReader() = default;
  static Result<ArchiveReader> open(Bytes bytes) noexcept;
  Result<ArchiveMember> next() noexcept;
  /// Of the member that next() last looked at, as far as it could be read: names damage.
  std::string_view name() const noexcept { return name_; }

 private:
  struct Entry;
  Result<Entry> entry_at(std::uint64_t offset) const noexcept;
  bool read_table(const Entry& entry) noexcept;
  Result<ArchiveMember> member_of(const Entry& entry) noexcept;
  Result<std::string_view> long_name(std::string_view reference) const noexcept;

  Bytes bytes_;
  Bytes names_;  // the `//` table
  std::string_view name_;
  std::uint64_t cursor_ = 0;
};

}  // namespace kshim::image
