// SPDX-License-Identifier: Apache-2.0
// All ranges of memory that pointers may refer to. Device memory is zeroed host memory: copies are real, and
// the output of kernels reads as zero.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/driver_api.h"

namespace kshim::sim {

struct Context;
struct Device;

enum class MemoryKind : std::uint8_t {
  device,
  managed,
  host,        ///< cuMemAllocHost, cuMemHostAlloc
  registered,  ///< cuMemHostRegister: the program's own pages
  global,      ///< a variable of a module: no cuMemFree
  mapped,      ///< cuMemMap
};

/// In Allocation::flags: memory of a graph's allocation node, which ends with the graph and not by cuMemFree.
constexpr unsigned kOwnedByGraph = 1U << 31;

struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size = 0;   ///< as asked for
  std::size_t pages = 0;  ///< bytes to give back to the system; 0: from the heap
  MemoryKind kind = MemoryKind::device;
  Context* context = nullptr;  ///< null: of no context (host memory outlives its context's reset in no
                               ///< driver; see free_allocations)
  int device = 0;
  std::uint64_t id = 0;  ///< CU_POINTER_ATTRIBUTE_BUFFER_ID: unique over the life of the process
  unsigned flags = 0;    ///< of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged
  void* pool = nullptr;  ///< the CUmemoryPool it came from
  bool owned = true;     ///< false: the pages are the program's
};

/// CUDA_ERROR_OUT_OF_MEMORY beyond the device's size (device, managed, global) or the host's.
CUresult allocate(Context& context, std::size_t size, MemoryKind kind, unsigned flags, Allocation& out,
                  void* pool = nullptr);
/// Adds pages that the program owns. 712 if they overlap a known range.
CUresult adopt(Context* context, int device, std::uintptr_t base, std::size_t size, MemoryKind kind,
               unsigned flags);
/// The range that holds `address`.
bool find_allocation(std::uintptr_t address, Allocation& out) noexcept;
/// True when all of [address, address + size) lies in one known range, or in mappings (cuMemMap) side by
/// side.
bool covers(std::uintptr_t address, std::size_t size) noexcept;
/// Zeroes a large range by giving its pages back, which takes no memory. False where that cannot be done.
bool make_zero(std::uintptr_t address, std::size_t size) noexcept;
/// Ends the range that begins at `address` and is of one of two kinds. False when there is none.
bool release(std::uintptr_t address, MemoryKind kind, MemoryKind or_kind) noexcept;
/// All of a context but registered host memory.
void free_allocations(const Context& context) noexcept;

std::uint64_t used_bytes(int device) noexcept;
/// Counts bytes that are not in the table (cuMemCreate). False beyond the device's size.
bool charge(const Device& device, std::size_t bytes) noexcept;
void discharge(int device, std::size_t bytes) noexcept;

inline std::uintptr_t address_of(CUdeviceptr pointer) noexcept {
  return static_cast<std::uintptr_t>(pointer);
}
inline void* pointer_of(CUdeviceptr pointer) noexcept { return reinterpret_cast<void*>(address_of(pointer)); }

}  // namespace kshim::sim
