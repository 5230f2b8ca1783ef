// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdint>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

using Pools = WithContext;
using Virtual = WithContext;

std::uint64_t used(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  EXPECT_CU(0, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
  return bytes;
}

TEST_F(Pools, StreamOrderedAllocation) {
  CUmemoryPool pool = nullptr;
  ASSERT_CU(0, cuDeviceGetDefaultMemPool(&pool, 0));
  CUdeviceptr memory = 0;
  ASSERT_CU(0, cuMemAllocAsync(&memory, 1000, nullptr));
  EXPECT_EQ(used(pool), 1000U);
  CUmemoryPool from = nullptr;
  EXPECT_CU(0, cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  EXPECT_EQ(from, pool);
  EXPECT_CU(0, cuMemsetD8Async(memory, 1, 1000, nullptr));
  EXPECT_CU(0, cuMemFreeAsync(memory, nullptr));
  EXPECT_CU(0, cuStreamSynchronize(nullptr));
  EXPECT_EQ(used(pool), 0U);
  cuuint64_t high = 0;
  EXPECT_CU(0, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
  EXPECT_EQ(high, 1000U);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(memory, nullptr));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&memory, kDeviceBytes + 1, nullptr));
}

TEST_F(Pools, OwnPools) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.maxSize = 4096;
  CUmemoryPool pool = nullptr;
  ASSERT_CU(0, cuMemPoolCreate(&pool, &properties));
  cuuint64_t threshold = 77;
  EXPECT_CU(0, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  threshold = 0;
  EXPECT_CU(0, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_EQ(threshold, 77U);
  CUdeviceptr memory = 0;
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&memory, 4097, pool, nullptr));
  ASSERT_CU(0, cuMemAllocFromPoolAsync(&memory, 4096, pool, nullptr));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&memory, 1, pool, nullptr));
  EXPECT_CU(0, cuMemFree(memory));
  EXPECT_EQ(used(pool), 0U);
  EXPECT_CU(0, cuDeviceSetMemPool(0, pool));
  CUmemoryPool current = nullptr;
  EXPECT_CU(0, cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool);
  EXPECT_CU(0, cuMemPoolDestroy(pool));
  EXPECT_CU(0, cuDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_CU(0, cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, pool);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
}

TEST_F(Pools, OnlyOfDevices) {
  CUmemoryPool pool = nullptr;
  CUmemLocation place{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT_CU(0, cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
  place.type = CU_MEM_LOCATION_TYPE_HOST;
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  place.type = CU_MEM_LOCATION_TYPE_NONE;
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  place.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
}

CUmemAllocationProp device_memory() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

TEST_F(Virtual, OnePieceMappedTwice) {
  const CUmemAllocationProp properties = device_memory();
  std::size_t unit = 0;
  ASSERT_CU(0, cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range = 0;
  ASSERT_CU(0, cuMemAddressReserve(&range, 4 * unit, 0, 0, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(range, 1, 1));  // nothing there yet
  CUmemGenericAllocationHandle piece = 0;
  ASSERT_CU(0, cuMemCreate(&piece, unit, &properties, 0));
  EXPECT_CU(0, cuMemMap(range, unit, 0, piece, 0));
  EXPECT_CU(0, cuMemMap(range + unit, unit, 0, piece, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + unit, unit, 0, piece, 0));      // occupied
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 4 * unit, unit, 0, piece, 0));  // outside
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_CU(0, cuMemSetAccess(range, 2 * unit, &access, 1));
  unsigned long long flags = 0;
  EXPECT_CU(0, cuMemGetAccess(&flags, &access.location, range + unit));
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  EXPECT_CU(0, cuMemRelease(piece));  // the mappings keep it
  EXPECT_CU(0, cuMemsetD8(range + 5, 0x5a, 1));
  std::uint8_t byte = 0;
  EXPECT_CU(0, cuMemcpyDtoH(&byte, range + unit + 5, 1));
  EXPECT_EQ(byte, 0x5a);
  EXPECT_CU(0, cuMemsetD8(range, 1, 2 * unit));  // over the seam
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range, 4 * unit));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(range, 3 * unit));
  std::size_t free = 0;
  EXPECT_CU(0, cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, kDeviceBytes - unit);
  EXPECT_CU(0, cuMemUnmap(range, 2 * unit));
  EXPECT_CU(0, cuMemAddressFree(range, 4 * unit));
  EXPECT_CU(0, cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, kDeviceBytes);
}

TEST_F(Virtual, ThroughADescriptor) {
  const CUmemAllocationProp properties = device_memory();
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  CUmemGenericAllocationHandle piece = 0;
  ASSERT_CU(0, cuMemCreate(&piece, kUnit, &properties, 0));
  int descriptor = -1;
  ASSERT_CU(0, cuMemExportToShareableHandle(&descriptor, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CU(0, cuMemImportFromShareableHandle(&again,
                                              reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_EQ(::close(descriptor), 0);
  CUdeviceptr range = 0;
  ASSERT_CU(0, cuMemAddressReserve(&range, 2 * kUnit, 0, 0, 0));
  ASSERT_CU(0, cuMemMap(range, kUnit, 0, piece, 0));
  ASSERT_CU(0, cuMemMap(range + kUnit, kUnit, 0, again, 0));
  EXPECT_CU(0, cuMemsetD8(range, 3, 1));
  std::uint8_t byte = 0;
  EXPECT_CU(0, cuMemcpyDtoH(&byte, range + kUnit, 1));
  EXPECT_EQ(byte, 3);
  EXPECT_CU(0, cuMemUnmap(range, 2 * kUnit));
  EXPECT_CU(0, cuMemRelease(piece));
  EXPECT_CU(0, cuMemRelease(again));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemRelease(again));
  EXPECT_CU(0, cuMemAddressFree(range, 2 * kUnit));
}

}  // namespace
}  // namespace kshim::sim::test
