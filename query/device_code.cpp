// SPDX-License-Identifier: Apache-2.0
#include "query/device_code.h"

#include "kshim/image/cubin.h"
#include "kshim/image/payload.h"
#include "kshim/image/ptx.h"
#include "query/collect.h"
#include "query/host_elf.h"

namespace kshim::query {
namespace {

using image::BlobKind;

constexpr std::uint64_t kStart = 65536;  // PTX may begin with comments

Reason add_bare(const image::Candidate& candidate, std::uint64_t size, DeviceCode& out) noexcept {
  CodeImage image;
  image.candidate = candidate;
  image.stored = image.clear = size;
  CodeModule module;
  module.count = 1;
  out.packaging = image::Packaging::loose;
  return out.images.push(image) && out.modules.push(module) ? Reason::none : Reason::no_memory;
}

Reason add_cubin(SourceFile& file, DeviceCode& out) noexcept {
  const auto cubin = image::CubinReader::open(file.bytes());
  if (!cubin) return Reason::damaged;
  return add_bare({image::ImageKind::cubin, cubin->arch(), {}}, cubin->elf().extent(), out);
}

Reason add_ptx(SourceFile& file, DeviceCode& out) noexcept {
  const auto ptx = image::PtxReader::open(file.bytes());
  if (!ptx || !ptx->ends_well()) return Reason::damaged;
  return add_bare({image::ImageKind::ptx, ptx->target(), ptx->isa()}, file.bytes().size(), out);
}

Reason add_fatbins(SourceFile& file, image::SectionRole role, DeviceCode& out) noexcept {
  Array<CodeRange> all;
  if (!all.push({0, file.bytes().size(), role})) return Reason::no_memory;
  return Collector(file, out).collect(all);
}

Reason find(SourceFile& file, DeviceCode& out) noexcept {
  if (!file.fetch(0, kStart)) return file.trouble();
  const Bytes bytes = file.bytes();
  const BlobKind kind = image::identify(bytes.size() > kStart ? bytes.first(kStart) : bytes);
  switch (kind) {
    case BlobKind::host_elf:
      return find_in_elf(file, out);
    case BlobKind::fatbin:
      return add_fatbins(file, image::SectionRole::fatbins, out);
    case BlobKind::fatbin_wrapper:
      // Its pointer is an address in a process that is no more. What it pointed at may stand behind it.
      return add_fatbins(file, image::SectionRole::data, out);
    case BlobKind::cubin:
    case BlobKind::ptx:
      if (bytes.size() > image::kPayloadCeiling) return Reason::too_large;
      if (!file.fetch(0, bytes.size())) return file.trouble();
      return kind == BlobKind::cubin ? add_cubin(file, out) : add_ptx(file, out);
    case BlobKind::ltoir:
      return add_bare({image::ImageKind::ltoir, {}, {}}, bytes.size(), out);
    case BlobKind::archive:
    case BlobKind::zip:
      return Reason::archive;
    case BlobKind::unknown:
      break;
  }
  return Reason::unknown_format;
}

}  // namespace

Reason find_device_code(SourceFile& file, DeviceCode& out) noexcept {
  if (const Reason reason = find(file, out); reason != Reason::none) return reason;
  // Parts that no module was linked from: what a linker would make of them is one module.
  if (out.modules.empty() && !out.images.empty()) {
    CodeModule module;
    module.count = static_cast<std::uint32_t>(out.images.size());
    if (!out.modules.push(module)) return Reason::no_memory;
  }
  return file.trouble();
}

}  // namespace kshim::query
