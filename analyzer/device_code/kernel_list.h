// SPDX-License-Identifier: Apache-2.0
// All kernels of an image with what each needs: registers, shared memory, threads a block.
#pragma once
#include <vector>

#include "kshim/image/cubin.h"

namespace kshim::analysis {

/// Reads images one after the other; keeps its memory between them.
class KernelLister {
 public:
  /// The kernels of a cubin or PTX in the clear, valid until the next call; they point into `clear`. Of PTX,
  /// which is no machine code yet, only name and max_threads are known. `whole` is false where the image
  /// cannot be read to its end.
  struct List {
    const std::vector<image::KernelSlot>& kernels;
    bool whole;
  };
  List list(image::ImageKind kind, Bytes clear);

 private:
  bool list_cubin(Bytes clear);
  bool list_ptx(Bytes clear);
  std::vector<image::KernelSlot> kernels_;
};

}  // namespace kshim::analysis
