// SPDX-License-Identifier: Apache-2.0
// What a file is by its first bytes, and whether it can hold device code.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

namespace kshim::input {

enum class FileKind : std::uint8_t {
  text,         ///< or nothing at all
  plain,        ///< of a format that holds no device code: pictures, sound, fonts, bytecode ...
  device_code,  ///< an ELF or PE file, a fatbin, a cubin, PTX, LTO-IR
  container,    ///< an archive, or a single file that is compressed
  data,         ///< anything else: device code may lie anywhere in it, or none
};

constexpr bool may_hold_code(FileKind kind) { return kind >= FileKind::device_code; }

/// As much as file_kind() wants to see of a file.
constexpr std::size_t kFirstBytes = 4096;

/// `name` helps where the first bytes do not tell: PTX behind a long comment, a tar without a magic.
FileKind file_kind(Bytes first, std::string_view name, std::uint64_t size) noexcept;

/// Whether a member of an archive, or a compressed file that was found in a folder, is passed over for its
/// name.
bool has_plain_name(std::string_view name) noexcept;
/// Of "lib.so.gz" "lib.so"; a name that does not tell stays.
std::string_view unpacked_name(std::string_view name) noexcept;

/// What files of FileKind::data are.
struct DataKind {
  enum class Contents : std::uint8_t {
    unknown,
    packed,  ///< compressed or in a database's pages: a search finds little
    open,    ///< as they are: where the search finds none, there is none
  };
  std::string name;  ///< "SQLite database", ".engine file", "file without an ending"
  Contents contents = Contents::unknown;
};
DataKind data_kind(Bytes first, std::string_view name);

}  // namespace kshim::input
