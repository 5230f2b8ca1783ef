// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/foreign_file.h"

#include <fmt/core.h>

namespace kshim::analysis {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::string_view what;
};
// RFC 1952, RFC 8878, the formats of xz, bzip2, lz4, PKZIP; byte order marks.
constexpr Magic kMagics[] = {
    {"\x1f\x8b"sv, "is compressed with gzip: unpack it first (gunzip)"},
    {"\x28\xb5\x2f\xfd"sv, "is compressed with zstd: unpack it first (unzstd)"},
    {"\xfd"
     "7zXZ\0"sv,
     "is compressed with xz: unpack it first (unxz)"},
    {"BZh"sv, "is compressed with bzip2: unpack it first (bunzip2)"},
    {"\x04\x22\x4d\x18"sv, "is compressed with lz4: unpack it first (unlz4)"},
    {"PK\x03\x04"sv, "is a zip archive: unpack it, and name the folder"},
    {"\xff\xfe"sv, "is text in UTF-16: a report is UTF-8; convert it (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff"sv, "is text in UTF-16: a report is UTF-8; convert it (iconv -f UTF-16 -t UTF-8)"},
    {"\x7f"
     "ELF"sv,
     "is a program or library: `kshim scan` reads those"},
};

}  // namespace

std::string foreign_file(std::string_view first_bytes) {
  for (const Magic& magic : kMagics) {
    if (first_bytes.starts_with(magic.bytes)) return std::string(magic.what);
  }
  constexpr std::size_t kUstar = 257;  // POSIX: where a tar header names itself
  if (first_bytes.size() > kUstar && first_bytes.substr(kUstar).starts_with("ustar"))
    return "is a tar archive: unpack it, and name the folder";
  // Our own output, which is JSON over several lines.
  for (const std::string_view schema : {"kshim-analysis/", "kshim-scan/", "kshim-explain/"}) {
    const std::size_t at = first_bytes.substr(0, 1024).find(schema);
    if (at == std::string_view::npos || first_bytes[first_bytes.find_first_not_of(" \t\r\n")] != '{')
      continue;
    return fmt::format("is what kshim wrote ({}), not a report: name the reports that it was made from",
                       schema.substr(0, schema.size() - 1));
  }
  return {};
}

}  // namespace kshim::analysis
