// SPDX-License-Identifier: Apache-2.0
#include "graph/kernel_operation.h"

#include "context/context.h"
#include "modules/module.h"

namespace kshim::sim {

KernelOperation::KernelOperation(const void* handle, const Function& function, const Launch& launch)
    : handle_(handle),
      by_kernel_(object_of<Kernel>(handle) != nullptr),
      context_(function.module.context.handle<CUcontext>()),
      name_(function.name),
      launch_(launch),
      complete_(copy_arguments(function, launch, bytes_)) {
  for (const image::ParameterInfo& parameter : function.code.parameters) offsets_.push_back(parameter.offset);
  launch_.extra = nullptr;
  point();
}

KernelOperation::KernelOperation(const KernelOperation& other)
    : Operation(other),
      attributes(other.attributes),
      handle_(other.handle_),
      by_kernel_(other.by_kernel_),
      context_(other.context_),
      name_(other.name_),
      launch_(other.launch_),
      bytes_(other.bytes_),
      offsets_(other.offsets_),
      complete_(other.complete_) {
  point();
}

void KernelOperation::point() noexcept {
  pointers_.clear();
  for (const std::size_t offset : offsets_) pointers_.push_back(bytes_.data() + offset);
  launch_.parameters = pointers_.empty() ? nullptr : pointers_.data();
}

CUDA_KERNEL_NODE_PARAMS_v2 KernelOperation::params() noexcept {
  CUDA_KERNEL_NODE_PARAMS_v2 out{};
  void* handle = const_cast<void*>(handle_);
  if (by_kernel_) {
    out.kern = static_cast<CUkernel>(handle);
  } else {
    out.func = static_cast<CUfunction>(handle);
  }
  out.ctx = context_;
  out.gridDimX = launch_.grid.x, out.gridDimY = launch_.grid.y, out.gridDimZ = launch_.grid.z;
  out.blockDimX = launch_.block.x, out.blockDimY = launch_.block.y, out.blockDimZ = launch_.block.z;
  out.sharedMemBytes = launch_.shared;
  out.kernelParams = launch_.parameters;
  return out;
}

}  // namespace kshim::sim
