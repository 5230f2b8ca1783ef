// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/device_code.h"

#include <elf.h>
#include <fmt/core.h>

#include "analyzer/model/device_code_collect.h"
#include "analyzer/model/device_code_host.h"
#include "kshim/image/cubin.h"
#include "kshim/image/ptx.h"

namespace kshim::analysis {
namespace {

void add_bare(Bytes file, const image::Candidate& candidate, std::uint64_t size, bool relocatable,
              DeviceCode& out) {
  CodeImage image;
  image.candidate = candidate;
  image.relocatable = relocatable;
  image.bytes = size;
  image.payload = file.first(static_cast<std::size_t>(size));
  out.images.push_back(image);
  out.modules.push_back({0, 1, 0, {}});
}

void add_cubin(Bytes file, DeviceCode& out) {
  const auto cubin = image::CubinReader::open(file);
  if (!cubin) {
    CodeCollector(file, out).damage(cubin.error().offset,
                                    fmt::format("the cubin {}", describe(cubin.error().code)));
    return;
  }
  add_bare(file, {image::ImageKind::cubin, cubin->arch(), {}}, cubin->elf().extent(),
           cubin->elf().type() == ET_REL, out);
}

void add_ptx(Bytes file, DeviceCode& out) {
  // A text without .target is no PTX, whatever its first word is.
  if (const auto ptx = image::PtxReader::open(file))
    add_bare(file, {image::ImageKind::ptx, ptx->target(), ptx->isa()}, file.size(), false, out);
}

/// LTO-IR by itself, as `nvcc -ltoir` writes it: behind the magic, at 26, the number of -arch times ten; a
/// header longer than 40 bytes (at 16) with 0x10020 at 32 for an `a`. Measured with nvcc 13.0; nothing there
/// tells `f`. LLVM bitcode, the other form, is not NVIDIA's alone and names no architecture.
void add_ltoir(Bytes file, DeviceCode& out) {
  constexpr std::uint32_t kNvvmMagic = 0x7f4e43ed;
  const auto magic = read_le<std::uint32_t>(file, 0);
  const auto number = read_le<std::uint16_t>(file, 26);
  if (!magic || *magic != kNvvmMagic || !number) return;
  image::Arch arch;
  arch.cc = image::ComputeCapability::from_number(*number / 10U);
  if (read_le<std::uint32_t>(file, 16).value_or(0) > 40 &&
      read_le<std::uint32_t>(file, 32).value_or(0) == 0x10020)
    arch.suffix = image::Suffix::a;
  add_bare(file, {image::ImageKind::ltoir, arch, {}}, file.size(), false, out);
}

}  // namespace

DeviceCode find_device_code(Bytes file) {
  DeviceCode out;
  switch (image::identify(file)) {
    case image::BlobKind::fatbin:
      // One or several behind each other, as in their section.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::fatbins}});
      break;
    case image::BlobKind::fatbin_wrapper:
      // Its pointer is an address in a process that is no more. What it pointed at may stand behind it.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::data}});
      break;
    case image::BlobKind::cubin:
      add_cubin(file, out);
      break;
    case image::BlobKind::ptx:
      add_ptx(file, out);
      break;
    case image::BlobKind::ltoir:
      add_ltoir(file, out);
      break;
    case image::BlobKind::host_elf:
      find_in_elf(file, out);
      break;
    default:
      find_in_pe(file, out);
  }
  return out;
}

}  // namespace kshim::analysis
