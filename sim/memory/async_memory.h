// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and release as operations, so that a capture can make nodes of them. The memory
// of a captured allocation lives as long as a node that holds it, in the graph or in what was instantiated
// from it.
#pragma once
#include <memory>

#include "base/driver_api.h"
#include "launch/stream.h"

namespace kshim::sim {

struct AllocateOperation final : Operation {
  /// Ends with the last node that refers to it.
  struct Memory {
    explicit Memory(CUdeviceptr at) noexcept : address(at) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();
    const CUdeviceptr address;
  };
  std::shared_ptr<const Memory> memory;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
  void execute() override;  ///< zeroes it: each launch of the graph allocates again
  std::unique_ptr<Operation> clone() const override { return std::make_unique<AllocateOperation>(*this); }
};

struct FreeOperation final : Operation {
  explicit FreeOperation(CUdeviceptr at) noexcept : address(at) {}
  CUdeviceptr address;
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
  void execute() override;
  std::unique_ptr<Operation> clone() const override { return std::make_unique<FreeOperation>(*this); }
};

}  // namespace kshim::sim
