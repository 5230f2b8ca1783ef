// SPDX-License-Identifier: Apache-2.0
// Devices: the same as libcuda.so.1's, and hostile arguments.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "with_nvml.h"

namespace kshim::sim::test {
namespace {

using namespace nvml;

TEST_F(WithNvml, DevicesAreThoseOfTheDriver) {
  ASSERT_CU(0, cuInit(0));
  int devices = 0;
  ASSERT_CU(0, cuDeviceGetCount(&devices));
  unsigned count = 0;
  ASSERT_NVML(0, nvmlDeviceGetCount_v2(&count));
  ASSERT_EQ(count, static_cast<unsigned>(devices));
  for (CUdevice ordinal = 0; ordinal < devices; ++ordinal) {
    Handle* device = nullptr;
    ASSERT_NVML(0, nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(ordinal), &device));
    unsigned index = 99;
    EXPECT_NVML(0, nvmlDeviceGetIndex(device, &index));
    EXPECT_EQ(index, static_cast<unsigned>(ordinal));
    char wanted[96];
    char found[96];
    ASSERT_CU(0, cuDeviceGetName(wanted, sizeof wanted, ordinal));
    ASSERT_NVML(0, nvmlDeviceGetName(device, found, sizeof found));
    EXPECT_STREQ(found, wanted);
    EXPECT_TRUE(std::string_view(found).ends_with(" (simulated)"));

    CUuuid uuid;
    ASSERT_CU(0, cuDeviceGetUuid(&uuid, ordinal));
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
      char byte[4];
      std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
      text.append(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "").append(byte);
    }
    ASSERT_NVML(0, nvmlDeviceGetUUID(device, found, sizeof found));
    EXPECT_EQ(text, found);
    Handle* again = nullptr;
    EXPECT_NVML(0, nvmlDeviceGetHandleByUUID(found, &again));
    EXPECT_EQ(again, device);

    ASSERT_CU(0, cuDeviceGetPCIBusId(wanted, sizeof wanted, ordinal));
    EXPECT_NVML(0, nvmlDeviceGetHandleByPciBusId_v2(wanted, &(again = nullptr)));
    EXPECT_EQ(again, device);
    PciInfo pci{};
    ASSERT_NVML(0, nvmlDeviceGetPciInfo_v3(device, &pci));
    EXPECT_STREQ(pci.bus_id_legacy, wanted);
    EXPECT_EQ(std::string(pci.bus_id), "0000" + std::string(wanted));
    EXPECT_NVML(0, nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &(again = nullptr)));
    EXPECT_EQ(again, device);
    CUdevice by_bus = -1;
    EXPECT_CU(0, cuDeviceGetByPCIBusId(&by_bus, pci.bus_id));
    EXPECT_EQ(by_bus, ordinal);
    EXPECT_EQ(pci.device_id & 0xffff, 0x10deU);

    int value = 0;
    int major = 0;
    int minor = 0;
    ASSERT_NVML(0, nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
    ASSERT_CU(0, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal));
    EXPECT_EQ(major, value);
    ASSERT_CU(0, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal));
    EXPECT_EQ(minor, value);
    ASSERT_CU(0, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, ordinal));
    ComputeMode mode{};
    ASSERT_NVML(0, nvmlDeviceGetComputeMode(device, &mode));
    EXPECT_EQ(static_cast<int>(mode), value);
  }
}

TEST_F(WithNvml, Memory) {
  nvml::Memory memory{};
  ASSERT_NVML(0, nvmlDeviceGetMemoryInfo(device_, &memory));
  EXPECT_EQ(memory.total, kDeviceBytes);
  EXPECT_EQ(memory.free + memory.used, kDeviceBytes);
  MemoryV2 newer{};
  EXPECT_NVML(25, nvmlDeviceGetMemoryInfo_v2(device_, &newer));
  newer.version = kMemoryV2;
  ASSERT_NVML(0, nvmlDeviceGetMemoryInfo_v2(device_, &newer));
  EXPECT_EQ(newer.version, kMemoryV2);
  EXPECT_EQ(newer.total, kDeviceBytes);
  EXPECT_EQ(newer.free + newer.used + newer.reserved, kDeviceBytes);
}

TEST_F(WithNvml, PeersAsTheDriverSays) {
  Handle* other = nullptr;
  ASSERT_NVML(0, nvmlDeviceGetHandleByIndex_v2(0, &other));
  const int wanted[] = {0, 0, 5, 5, 0};
  for (unsigned question = 0; question < 5; ++question) {
    PeerStatus status{99};
    EXPECT_NVML(0, nvmlDeviceGetP2PStatus(device_, other, static_cast<PeerQuestion>(question), &status));
    EXPECT_EQ(static_cast<int>(status), wanted[question]);
  }
  PeerStatus status{};
  EXPECT_NVML(0, nvmlDeviceGetP2PStatus(device_, device_, PeerQuestion::read, &status));
  EXPECT_NVML(2, nvmlDeviceGetP2PStatus(device_, other, static_cast<PeerQuestion>(5), &status));
  EXPECT_NVML(2, nvmlDeviceGetP2PStatus(device_, nullptr, PeerQuestion::read, &status));
  EXPECT_NVML(2, nvmlDeviceGetP2PStatus(nullptr, other, PeerQuestion::read, &status));
  EXPECT_NVML(2, nvmlDeviceGetP2PStatus(device_, other, PeerQuestion::read, nullptr));
}

TEST_F(WithNvml, IndicesAddressesAndNamesThatAreNone) {
  Handle* found = device_;
  EXPECT_NVML(2, nvmlDeviceGetHandleByIndex_v2(2, &found));
  EXPECT_NVML(2, nvmlDeviceGetHandleByIndex_v2(UINT32_MAX, &found));
  EXPECT_NVML(2, nvmlDeviceGetHandleByIndex_v2(0, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetCount_v2(nullptr));
  EXPECT_NVML(2, nvmlSystemGetDriverVersion(nullptr, 80));
  EXPECT_NVML(2, nvmlDeviceGetHandleByUUID(nullptr, &found));
  EXPECT_NVML(2, nvmlDeviceGetHandleByUUID("GPU-", nullptr));
  for (const char* uuid : {"", "GPU-", "nonsense", "GPU-00000000-0000-0000-0000-000000000000"})
    EXPECT_NVML(6, nvmlDeviceGetHandleByUUID(uuid, &found)) << uuid;
  EXPECT_NVML(2, nvmlDeviceGetHandleByPciBusId_v2(nullptr, &found));
  EXPECT_NVML(2, nvmlDeviceGetHandleByPciBusId_v2("00000000:01:00.0", nullptr));
  for (const char* bus :
       {"", ":", "01", "01:", "nonsense", "00000000:01:00.", "00000000:01:00.0 ", "-1:01:00.0",
        "100000001:01:00.0", "0000:0100000000:01:00.0", "0:1:0:0", "0:1:0.0.0", "0x0:1:0.0"})
    EXPECT_NVML(2, nvmlDeviceGetHandleByPciBusId_v2(bus, &found)) << bus;
  for (const char* bus : {"00000000:03:00.0", "0001:01:00.0", "00000000:01:01.0", "03:00"})
    EXPECT_NVML(6, nvmlDeviceGetHandleByPciBusId_v2(bus, &found)) << bus;
  EXPECT_EQ(found, device_);  // nothing is written on failure
  for (const char* bus : {"00000000:02:00.0", "0000:02:00.0", "0:2:0", "02:00.0", "2:0"}) {
    EXPECT_NVML(0, nvmlDeviceGetHandleByPciBusId_v2(bus, &(found = nullptr))) << bus;
    EXPECT_EQ(found, device_) << bus;
  }
}

TEST_F(WithNvml, HandlesThatAreNone) {
  int local = 0;
  auto* beside = reinterpret_cast<Handle*>(reinterpret_cast<char*>(device_) + 1);
  for (Handle* handle : {static_cast<Handle*>(nullptr), reinterpret_cast<Handle*>(&local), beside,
                         std::bit_cast<Handle*>(UINTPTR_MAX)}) {
    char text[96];
    unsigned number = 0;
    int part = 0;
    PciInfo pci{};
    nvml::Memory memory{};
    MemoryV2 newer{};
    newer.version = kMemoryV2;
    ComputeMode mode{};
    EXPECT_NVML(2, nvmlDeviceGetName(handle, text, sizeof text));
    EXPECT_NVML(2, nvmlDeviceGetUUID(handle, text, sizeof text));
    EXPECT_NVML(2, nvmlDeviceGetIndex(handle, &number));
    EXPECT_NVML(2, nvmlDeviceGetMinorNumber(handle, &number));
    EXPECT_NVML(2, nvmlDeviceGetPciInfo_v3(handle, &pci));
    EXPECT_NVML(2, nvmlDeviceGetMemoryInfo(handle, &memory));
    EXPECT_NVML(2, nvmlDeviceGetMemoryInfo_v2(handle, &newer));
    EXPECT_NVML(2, nvmlDeviceGetComputeMode(handle, &mode));
    EXPECT_NVML(2, nvmlDeviceGetCudaComputeCapability(handle, &part, &part));
  }
  int part = 0;
  EXPECT_NVML(2, nvmlDeviceGetName(device_, nullptr, 96));
  EXPECT_NVML(2, nvmlDeviceGetUUID(device_, nullptr, 96));
  EXPECT_NVML(2, nvmlDeviceGetIndex(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetMinorNumber(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetPciInfo_v3(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetMemoryInfo(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetMemoryInfo_v2(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetComputeMode(device_, nullptr));
  EXPECT_NVML(2, nvmlDeviceGetCudaComputeCapability(device_, nullptr, &part));
  EXPECT_NVML(2, nvmlDeviceGetCudaComputeCapability(device_, &part, nullptr));
}

}  // namespace
}  // namespace kshim::sim::test
