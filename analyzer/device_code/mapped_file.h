// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

namespace kshim::device_code {

/// A whole file mapped for reading. One that shrinks while it is read has zeros where its end was, and says
/// so: what was read of it must not be believed.
class MappedFile {
 public:
  /// The file, or a clause that says why not: "is no longer there".
  static std::variant<MappedFile, std::string> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  Bytes bytes() const noexcept { return bytes_; }
  bool has_shrunk() const noexcept;

 private:
  struct Guard;
  friend void on_bus_error(int signal, siginfo_t* info, void* context) noexcept;
  explicit MappedFile(Bytes bytes);
  Bytes bytes_;
  Guard* guard_ = nullptr;
};

/// Of a whole mapped file: the first data at or behind `at`, without the holes of a sparse one, which may be
/// larger than any disk. Of other bytes: all of them.
struct Stretch {
  std::uint64_t begin = 0, end = 0;
};
Stretch data_behind(Bytes file, std::uint64_t at);

}  // namespace kshim::device_code
