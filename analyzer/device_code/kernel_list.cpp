// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/kernel_list.h"

#include "kshim/image/ptx.h"

namespace kshim::analysis {

KernelLister::List KernelLister::list(image::ImageKind kind, Bytes clear) {
  kernels_.clear();
  bool whole = false;
  if (kind == image::ImageKind::cubin) whole = list_cubin(clear);
  if (kind == image::ImageKind::ptx) whole = list_ptx(clear);
  return {kernels_, whole};
}

bool KernelLister::list_cubin(Bytes clear) {
  const auto cubin = image::CubinReader::open(clear);
  if (!cubin) return false;
  bool whole = true;
  for (std::uint64_t cursor = 0;;) {
    const auto name = cubin->next_name(cursor);
    if (!name) {
      whole = name.error().code == Errc::not_found;
      break;
    }
    image::KernelSlot& slot = kernels_.emplace_back();
    slot.info.name = name->name;
    slot.info.code_bytes = name->code_bytes;
    slot.symbol = name->symbol;
    slot.section = name->section;
  }
  return cubin->describe(kernels_).ok() && whole;
}

bool KernelLister::list_ptx(Bytes clear) {
  const auto ptx = image::PtxReader::open(clear);
  if (!ptx) return false;
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = ptx->next_brief(cursor);
    if (!kernel) return kernel.error().code == Errc::not_found;
    kernels_.emplace_back().info = *kernel;
  }
}

}  // namespace kshim::analysis
