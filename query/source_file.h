// SPDX-License-Identifier: Apache-2.0
// A file that is read by pread into memory of the same size; only what was fetched takes room:
// parsers see the file as if it were mapped. A mapping itself brings SIGBUS when somebody truncates the file
// meanwhile.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "query/reason.h"

struct stat;

namespace kshim::query {

/// A file at one moment. The change time is there because a program may set the modification time back.
struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_seconds = 0, modified_nanoseconds = 0;
  std::int64_t changed_seconds = 0, changed_nanoseconds = 0;
  bool operator==(const Identity&) const = default;
};
/// Follows links, opens nothing.
Reason identify(const char* path, Identity& out) noexcept;

class SourceFile {
 public:
  /// `identity`: what identify() said of the path.
  SourceFile(const char* path, const Identity& identity) noexcept : path_(path), identity_(identity) {}
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  /// Opens the file when it is first called; all below is for an open one. Reason::changed where it is
  /// another one now.
  Reason open() noexcept;
  bool is_open() const noexcept { return file_ >= 0; }
  Bytes bytes() const noexcept { return {memory_, static_cast<std::size_t>(identity_.size)}; }
  /// Reads what lies between, as far as the file goes. False: see trouble().
  bool fetch(std::uint64_t offset, std::uint64_t size) noexcept;
  /// The same into other memory, which is cheaper where every byte is looked at once; both lie inside the
  /// file.
  bool copy(std::uint64_t offset, std::uint64_t size, std::byte* to) noexcept;
  /// Gives back the memory of what was fetched there; fetched again, it is read again.
  void drop(std::uint64_t offset, std::uint64_t size) noexcept;
  /// What kept fetch() from reading; then nothing that was parsed counts.
  Reason trouble() const noexcept { return trouble_; }
  /// Reason::changed where the file is no longer what it was when it was opened; none where it never was.
  Reason check() noexcept;
  /// Whether the file was last written long enough ago that another write would change its times.
  bool settled() const noexcept;

 private:
  const char* path_;
  int file_ = -1;
  std::byte* memory_ = nullptr;
  Identity identity_;
  Reason trouble_ = Reason::none;
  std::uint64_t last_from_ = 0, last_to_ = 0;  ///< what was fetched last
};

}  // namespace kshim::query
