// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kshim/image/fatbin.h"
#include "kshim/image/image.h"
#include "ptx_scanner.h"

namespace kshim::image {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
// NVVM's own container of LTO-IR ("EDCN" read as a little-endian word is 0x7f4e43ed), and LLVM bitcode as
// -dlto objects of CUDA 11 carry it.
constexpr std::uint32_t kNvvmMagic = 0x7f4e43ed;
constexpr std::uint32_t kBitcodeMagic = 0xdec04342;

bool starts_with(Bytes bytes, std::string_view magic) noexcept { return text_of(bytes).starts_with(magic); }

/// PTX may begin with comments (nvcc's does); the first word after them is the directive `.version`.
bool looks_like_ptx(Bytes bytes) noexcept {
  PtxScanner scanner(text_of(bytes));
  return scanner.next().text == ".version";
}

}  // namespace

BlobKind identify(Bytes bytes) noexcept {
  if (const auto magic = read_le<std::uint32_t>(bytes, 0)) {
    switch (*magic) {
      case kFatbinMagic:
        return BlobKind::fatbin;
      case kWrapperMagic:
        return BlobKind::fatbin_wrapper;
      case kNvvmMagic:
      case kBitcodeMagic:
        return BlobKind::ltoir;
      default:
        break;
    }
  }
  using namespace std::string_view_literals;
  if (starts_with(bytes,
                  "\x7f"
                  "ELF"sv))
    return read_le<std::uint16_t>(bytes, 18).value_or(0) == kMachineCuda ? BlobKind::cubin
                                                                         : BlobKind::host_elf;
  if (starts_with(bytes, "!<arch>\n"sv) || starts_with(bytes, "!<thin>\n"sv)) return BlobKind::archive;
  if (starts_with(bytes, "PK\x03\x04"sv) || starts_with(bytes, "PK\x05\x06"sv)) return BlobKind::zip;
  return looks_like_ptx(bytes) ? BlobKind::ptx : BlobKind::unknown;
}

}  // namespace kshim::image
