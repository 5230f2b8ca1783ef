// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string_view>

#include "cubin_builder.h"
#include "fatbin_builder.h"
#include "kshim/image/image.h"

namespace kshim::image {
namespace {

using namespace std::string_view_literals;
using test::Buffer;

struct Line {
  const char* what;
  std::string_view bytes;
  BlobKind kind;
};

TEST(Identify, TellsByTheFirstBytes) {
  for (const Line& each :
       {Line{"nothing", ""sv, BlobKind::unknown}, Line{"one byte", "\x50"sv, BlobKind::unknown},
        Line{"fatbin", "\x50\xed\x55\xba\1\0\x10\0"sv, BlobKind::fatbin},
        Line{"fatbin, cut off behind its magic", "\x50\xed\x55\xba"sv, BlobKind::fatbin},
        Line{"wrapper", "\xb1\x43\x62\x46\1\0\0\0"sv, BlobKind::fatbin_wrapper},
        Line{"NVVM IR", "\xed\x43\x4e\x7f\0\0\0\0"sv, BlobKind::ltoir},
        Line{"bitcode", "BC\xc0\xde"sv, BlobKind::ltoir}, Line{"archive", "!<arch>\n"sv, BlobKind::archive},
        Line{"thin archive", "!<thin>\n"sv, BlobKind::archive},
        Line{"half an archive", "!<arch>"sv, BlobKind::unknown}, Line{"wheel", "PK\3\4"sv, BlobKind::zip},
        Line{"empty zip", "PK\5\6"sv, BlobKind::zip},
        Line{"ELF, cut off before its machine",
             "\x7f"
             "ELF\2\1\1"sv,
             BlobKind::host_elf},
        Line{"PTX", ".version 9.0"sv, BlobKind::ptx},
        Line{"PTX behind comments", "//\n// x\n/* y */\n.version 9.0"sv, BlobKind::ptx},
        Line{"nearly PTX", ".versions 9.0"sv, BlobKind::unknown},
        Line{"text", "version 9.0"sv, BlobKind::unknown},
        Line{"a comment without an end", "/* .version"sv, BlobKind::unknown}})
    EXPECT_EQ(identify(bytes_of(each.bytes)), each.kind) << each.what;
}

TEST(Identify, TellsCubinsFromHostFiles) {
  Buffer bytes = test::build_cubin({.arch = test::arch_of(90)});
  EXPECT_EQ(identify(bytes), BlobKind::cubin);
  test::put(bytes, 18, std::uint16_t{62});
  EXPECT_EQ(identify(bytes), BlobKind::host_elf);
}

}  // namespace
}  // namespace kshim::image
