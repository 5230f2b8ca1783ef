// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

using Memory = WithContext;

std::vector<std::uint8_t> counting(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

TEST_F(Memory, NewMemoryIsZero) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{1} << 20}) {
    // Many at once and twice, so that what the first round wrote and freed is handed out again.
    for (int round = 0; round < 2; ++round) {
      std::vector<CUdeviceptr> pieces(40);
      for (CUdeviceptr& piece : pieces) {
        ASSERT_CU(0, cuMemAlloc(&piece, size));
        std::vector<std::uint8_t> bytes(size, 7);
        EXPECT_CU(0, cuMemcpyDtoH(bytes.data(), piece, size));
        EXPECT_EQ(bytes, std::vector<std::uint8_t>(size, 0));
        EXPECT_CU(0, cuMemsetD8(piece, 9, size));
      }
      for (const CUdeviceptr piece : pieces) EXPECT_CU(0, cuMemFree(piece));
    }
  }
}

TEST_F(Memory, TheDeviceFills) {
  CUdeviceptr one = 0;
  CUdeviceptr other = 0;
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_CU(0, cuMemAlloc(&one, kDeviceBytes / 2));
  EXPECT_CU(0, cuMemGetInfo(&free, &total));
  EXPECT_EQ(total, kDeviceBytes);
  EXPECT_EQ(free, kDeviceBytes / 2);
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&other, kDeviceBytes / 2 + 1));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&other, kDeviceBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_CU(0, cuMemAlloc(&other, kDeviceBytes / 2));
  EXPECT_CU(0, cuMemFree(one));
  EXPECT_CU(0, cuMemFree(other));
  EXPECT_CU(0, cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, kDeviceBytes);
}

TEST_F(Memory, MisuseIsRefused) {
  CUdeviceptr memory = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&memory, 0));
  EXPECT_CU(0, cuMemFree(0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1000));
  ASSERT_CU(0, cuMemAlloc(&memory, 64));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory + 8));
  std::array<char, 128> host{};
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(memory, host.data(), 65));  // one byte too far
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(memory + 60, host.data(), 5));
  EXPECT_CU(0, cuMemcpyHtoD(memory + 60, host.data(), 4));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(memory, nullptr, 4));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host.data(), 0, 4));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(memory + 2, 0, 1));  // not aligned
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(memory, 0, 65));
  EXPECT_CU(0, cuMemFree(memory));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
}

TEST_F(Memory, CopiesAndFillsInRows) {
  constexpr std::size_t kWidth = 10, kHeight = 4;
  CUdeviceptr memory = 0;
  std::size_t pitch = 0;
  ASSERT_CU(0, cuMemAllocPitch(&memory, &pitch, kWidth, kHeight, 4));
  EXPECT_GE(pitch, kWidth);
  EXPECT_EQ(pitch % 512, 0U);
  const auto host = counting(kWidth * kHeight);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = kWidth;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = pitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  ASSERT_CU(0, cuMemcpy2D(&copy));
  std::uint8_t byte = 0;
  EXPECT_CU(0, cuMemcpyDtoH(&byte, memory + 2 * pitch + 3, 1));
  EXPECT_EQ(byte, host[2 * kWidth + 3]);
  EXPECT_CU(0, cuMemsetD2D8(memory, pitch, 0xee, 2, kHeight));
  EXPECT_CU(0, cuMemcpyDtoH(&byte, memory + 3 * pitch + 1, 1));
  EXPECT_EQ(byte, 0xee);
  EXPECT_CU(0, cuMemcpyDtoH(&byte, memory + 3 * pitch + 2, 1));
  EXPECT_EQ(byte, host[3 * kWidth + 2]);
  copy.Height = 5;  // beyond the allocation
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
  EXPECT_CU(0, cuMemFree(memory));
}

TEST_F(Memory, Arrays) {
  CUDA_ARRAY3D_DESCRIPTOR description{8, 4, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = nullptr;
  ASSERT_CU(0, cuArray3DCreate(&array, &description));
  const auto host = counting(8 * 4 * 4 * 2);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 32;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 32;
  copy.Height = 4;
  copy.Depth = 2;
  ASSERT_CU(0, cuMemcpy3D(&copy));
  std::array<std::uint8_t, 4> part{};
  CUDA_MEMCPY3D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.srcXInBytes = 8;
  back.srcY = 1;
  back.srcZ = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = part.data();
  back.WidthInBytes = 4;
  back.Height = back.Depth = 1;
  ASSERT_CU(0, cuMemcpy3D(&back));
  EXPECT_EQ(part[0], host[32 * 4 + 32 + 8]);
  copy.dstZ = 1;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));  // a slice too far
  CUDA_ARRAY3D_DESCRIPTOR read{};
  EXPECT_CU(0, cuArray3DGetDescriptor(&read, array));
  EXPECT_EQ(read.Depth, 2U);
  EXPECT_CU(0, cuArrayDestroy(array));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

TEST_F(Memory, HostMemory) {
  void* host = nullptr;
  ASSERT_CU(0, cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE));
  CUdeviceptr mapped = 0;
  EXPECT_CU(0, cuMemHostGetDevicePointer(&mapped, host, 0));
  EXPECT_CU(0, cuMemsetD8(mapped, 5, 100));
  EXPECT_EQ(static_cast<std::uint8_t*>(host)[99], 5);
  EXPECT_CU(0, cuMemFreeHost(host));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
  std::vector<char> own(4096);
  EXPECT_CU(0, cuMemHostRegister(own.data(), own.size(), 0));
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own.data() + 100, 10, 0));
  EXPECT_CU(0, cuMemHostUnregister(own.data()));
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own.data()));
}

TEST_F(Memory, FreedWithoutAContext) {
  CUdeviceptr memory = 0;
  ASSERT_CU(0, cuMemAlloc(&memory, 1000));
  void* host = nullptr;
  ASSERT_CU(0, cuMemAllocHost(&host, 1000));
  CUcontext popped = nullptr;
  ASSERT_CU(0, cuCtxPopCurrent(&popped));
  EXPECT_CU(0, cuMemFreeHost(host));
  EXPECT_CU(0, cuMemFree(memory));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
  ASSERT_CU(0, cuCtxPushCurrent(popped));
  std::size_t free = 0;
  EXPECT_CU(0, cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, kDeviceBytes);
}

TEST_F(Memory, WhatAPointerIs) {
  CUdeviceptr memory = 0;
  ASSERT_CU(0, cuMemAlloc(&memory, 1000));
  unsigned type = 0;
  EXPECT_CU(0, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 10));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  CUdeviceptr base = 0;
  std::size_t size = 0;
  EXPECT_CU(0, cuMemGetAddressRange(&base, &size, memory + 999));
  EXPECT_EQ(base, memory);
  EXPECT_EQ(size, 1000U);
  unsigned long long first = 0;
  unsigned long long second = 0;
  EXPECT_CU(0, cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  EXPECT_CU(0, cuMemFree(memory));
  ASSERT_CU(0, cuMemAllocManaged(&memory, 1000, CU_MEM_ATTACH_GLOBAL));
  EXPECT_CU(0, cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  EXPECT_NE(first, second);  // even where the address is the same
  unsigned managed = 0;
  EXPECT_CU(0, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
  EXPECT_EQ(managed, 1U);
  *reinterpret_cast<int*>(memory) = 3;  // reachable from the host
  EXPECT_CU(0, cuMemPrefetchAsync(memory, 1000, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, nullptr));
  EXPECT_CU(0, cuMemFree(memory));
}

// "The result is not an error: null values" for memory that CUDA does not know (cuPointerGetAttributes).
TEST_F(Memory, UnknownPointers) {
  int own = 0;
  const auto pointer = reinterpret_cast<CUdeviceptr>(&own);
  unsigned type = 9;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
  int ordinal = 0;
  CUcontext context = context_;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_CONTEXT};
  void* answers[] = {&type, &ordinal, &context};
  EXPECT_CU(0, cuPointerGetAttributes(3, asked, answers, pointer));
  EXPECT_EQ(type, 0U);
  EXPECT_EQ(ordinal, CU_DEVICE_INVALID);
  EXPECT_EQ(context, nullptr);
}

TEST_F(Memory, BetweenDevices) {
  CUdeviceptr here = 0;
  ASSERT_CU(0, cuMemAlloc(&here, 16));
  CUcontext there_context = nullptr;
  ASSERT_CU(0, cuCtxCreate(&there_context, nullptr, 0, 1));
  CUdeviceptr there = 0;
  ASSERT_CU(0, cuMemAlloc(&there, 16));
  EXPECT_CU(0, cuMemsetD8(there, 4, 16));
  EXPECT_CU(0, cuMemcpyPeer(here, context_, there, there_context, 16));
  std::uint8_t byte = 0;
  EXPECT_CU(0, cuMemcpy(reinterpret_cast<CUdeviceptr>(&byte), here + 15, 1));
  EXPECT_EQ(byte, 4);
  EXPECT_CU(0, cuCtxDestroy(there_context));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(there));  // went with its context
  EXPECT_CU(0, cuMemFree(here));
}

}  // namespace
}  // namespace kshim::sim::test
