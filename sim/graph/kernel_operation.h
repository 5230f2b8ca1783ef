// SPDX-License-Identifier: Apache-2.0
// A launch that was captured, or a kernel node: the arguments are copied, as the driver does at the call.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "launch/launch.h"
#include "launch/stream.h"

namespace kshim::sim {

class KernelOperation final : public Operation {
 public:
  /// `handle` is what the program passed: the runtime looks its host stub up by it.
  KernelOperation(const void* handle, const Function& function, const Launch& launch);
  KernelOperation(const KernelOperation& other);
  KernelOperation& operator=(const KernelOperation&) = delete;
  ~KernelOperation() override = default;

  /// False: the launch had too few arguments for the kernel.
  bool complete() const noexcept { return complete_; }
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  void execute() override {}  // accepted, not executed
  std::unique_ptr<Operation> clone() const override { return std::make_unique<KernelOperation>(*this); }

  /// `kernelParams` points into this object.
  CUDA_KERNEL_NODE_PARAMS_v2 params() noexcept;
  /// Named by the graph's .dot.
  const std::string& name() const noexcept { return name_; }
  std::map<int, CUlaunchAttributeValue> attributes;

 private:
  void point() noexcept;
  const void* handle_;
  bool by_kernel_;
  CUcontext context_;
  std::string name_;
  Launch launch_;
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> offsets_;
  std::vector<void*> pointers_;
  bool complete_;
};

}  // namespace kshim::sim
