// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <variant>

#include "kshim/base/bytes.h"

namespace kshim::analysis {

/// A whole file mapped for reading. It must not shrink while it is read; nothing that maps a file can help
/// that.
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

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

}  // namespace kshim::analysis
