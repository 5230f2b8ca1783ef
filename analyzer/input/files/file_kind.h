// SPDX-License-Identifier: Apache-2.0
// What a file is by its first bytes, and whether it can hold device code.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

namespace kshim::input {

enum class FileKind : std::uint8_t {
  plain,        ///< cannot hold device code: text, images, sound, fonts, Python bytecode ...
  device_code,  ///< an ELF or PE file, a fatbin, a cubin, PTX, LTO-IR
  container,    ///< an archive, or a single file that is compressed
  data,         ///< anything else: device code may lie anywhere in it, or none
};

/// As much as file_kind() wants to see of a file.
constexpr std::size_t kFirstBytes = 4096;

/// `name` helps where the first bytes do not tell: PTX behind a long comment, a tar without a magic.
FileKind file_kind(Bytes first, std::string_view name, std::uint64_t size) noexcept;

/// What files of FileKind::data are.
struct DataKind {
  std::string name;  ///< "SQLite database", ".engine file", "file without an ending"
  bool searchable =
      false;  ///< its contents lie in it as they are: where the search finds none, there is none
};
DataKind data_kind(Bytes first, std::string_view name);

}  // namespace kshim::input
