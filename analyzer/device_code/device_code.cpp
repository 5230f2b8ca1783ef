// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/device_code.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/device_code/device_code_collect.h"
#include "analyzer/device_code/device_code_host.h"
#include "kshim/image/cubin.h"
#include "kshim/image/ptx.h"

namespace kshim::analysis {
namespace {

using image::BlobKind;

void add_bare(Bytes file, const image::Candidate& candidate, std::uint64_t size, bool relocatable,
              DeviceCode& out) {
  CodeImage image;
  image.candidate = candidate;
  image.relocatable = relocatable;
  image.bytes = size;
  image.payload = file.first(static_cast<std::size_t>(size));
  out.images.push_back(image);
  out.modules.push_back({.first = 0, .count = 1, .offset = 0, .parts = {}});
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

/// False for what is no image by itself.
bool add_by_itself(BlobKind kind, Bytes bytes, DeviceCode& out) {
  switch (kind) {
    case BlobKind::cubin:
      add_cubin(bytes, out);
      return true;
    case BlobKind::ptx:
      add_ptx(bytes, out);
      return true;
    case BlobKind::ltoir:
      add_ltoir(bytes, out);
      return true;
    default:
      return false;
  }
}

}  // namespace

DeviceCode find_device_code(Bytes file) {
  DeviceCode out;
  const BlobKind kind = image::identify(file);
  if (add_by_itself(kind, file, out)) return out;
  switch (kind) {
    case BlobKind::fatbin:
      // One or several behind each other, as in their section.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::fatbins}});
      break;
    case BlobKind::fatbin_wrapper:
      // Its pointer is an address in a process that is no more. What it pointed at may stand behind it.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::data}});
      break;
    case BlobKind::host_elf:
      find_in_elf(file, out);
      break;
    default:
      find_in_pe(file, out);
  }
  return out;
}

std::optional<std::size_t> find_module(const DeviceCode& code, std::uint64_t offset) {
  const auto at =
      std::lower_bound(code.modules.begin(), code.modules.end(), offset,
                       [](const CodeModule& each, std::uint64_t wanted) { return each.offset < wanted; });
  if (at == code.modules.end() || at->offset != offset) return std::nullopt;
  return static_cast<std::size_t>(at - code.modules.begin());
}

DeviceCode read_device_code(Bytes file, std::uint64_t offset) {
  DeviceCode out;
  if (offset >= file.size()) return out;
  Bytes bytes = file.subspan(static_cast<std::size_t>(offset));
  const BlobKind kind = image::identify(bytes);
  if (kind == BlobKind::fatbin) {
    CodeCollector(file, out).collect_one(offset);
    return out;
  }
  // A text in a program's data ends at its NUL.
  if (kind == BlobKind::ptx) bytes = bytes.first(std::min(bytes.size(), text_of(bytes).find('\0')));
  add_by_itself(kind, bytes, out);
  for (CodeImage& image : out.images) image.offset += offset;
  for (CodeModule& module : out.modules) module.offset += offset;
  for (Damage& damage : out.damage) damage.offset += offset;
  return out;
}

}  // namespace kshim::analysis
