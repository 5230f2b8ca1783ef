// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

class Devices : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(0, cuInit(0)); }
  static int attribute(CUdevice_attribute which, CUdevice device) {
    int value = -1;
    EXPECT_CU(0, cuDeviceGetAttribute(&value, which, device));
    return value;
  }
};

TEST_F(Devices, CountAndOrdinals) {
  CUdevice device = -1;
  EXPECT_CU(0, cuDeviceGet(&device, 1));
  EXPECT_EQ(device, 1);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 2));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
}

TEST_F(Devices, NamesSayThatTheyAreSimulated) {
  char name[100];
  ASSERT_CU(0, cuDeviceGetName(name, sizeof name, 1));
  EXPECT_STREQ(name, "NVIDIA H100 80GB HBM3 (simulated)");
  ASSERT_CU(0, cuDeviceGetName(name, 7, 1));
  EXPECT_STREQ(name, "NVIDIA");
}

// CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability".
TEST_F(Devices, LimitsOfTheArchitecture) {
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), 8);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0), 6);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0), 1536);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1), 2048);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0), 99 * 1024);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1), 227 * 1024);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 1), 48 * 1024);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0), 16);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0), 0);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1), 1);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), 32);
}

TEST_F(Devices, UnknownAttributesAreRefused) {
  int value = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}

TEST_F(Devices, IdentitiesDiffer) {
  CUuuid one;
  CUuuid other;
  ASSERT_CU(0, cuDeviceGetUuid(&one, 0));
  ASSERT_CU(0, cuDeviceGetUuid(&other, 1));
  EXPECT_NE(std::memcmp(&one, &other, sizeof one), 0);
  char bus[20];
  ASSERT_CU(0, cuDeviceGetPCIBusId(bus, sizeof bus, 1));
  EXPECT_STREQ(bus, "0000:02:00.0");
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1), 2);
  CUdevice device = -1;
  EXPECT_CU(0, cuDeviceGetByPCIBusId(&device, bus));
  EXPECT_EQ(device, 1);
  EXPECT_CU(0, cuDeviceGetByPCIBusId(&device, "01:00"));
  EXPECT_EQ(device, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:77:00.0"));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&device, "nonsense"));
}

TEST_F(Devices, MemoryAsAskedFor) {
  std::size_t bytes = 0;
  ASSERT_CU(0, cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, kDeviceBytes);
}

TEST_F(Devices, Peers) {
  int can = -1;
  EXPECT_CU(0, cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_CU(0, cuDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 2));
}

}  // namespace
}  // namespace kshim::sim::test
