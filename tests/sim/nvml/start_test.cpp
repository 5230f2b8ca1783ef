// SPDX-License-Identifier: Apache-2.0
// Start and end, versions, threads.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "with_nvml.h"

// As programs declare what they look up: with parameters that the simulator does not look at.
#define KSHIM_NVML_NOT_SIMULATED(name) extern "C" int name(kshim::sim::nvml::Handle*, unsigned, void*);
#include "nvml/not_simulated.def"
#undef KSHIM_NVML_NOT_SIMULATED

namespace kshim::sim::test {
namespace {

using namespace nvml;

using NotSimulated = int (*)(Handle*, unsigned, void*);
constexpr NotSimulated kNotSimulated[] = {
#define KSHIM_NVML_NOT_SIMULATED(name) &::name,
#include "nvml/not_simulated.def"
#undef KSHIM_NVML_NOT_SIMULATED
};

/// Every function that wants nvmlInit, with arguments that are good otherwise.
std::vector<int> all_results(Handle* device) {
  char text[96];
  unsigned number = 0;
  int major = 0;
  int minor = 0;
  PciInfo pci{};
  Memory memory{};
  MemoryV2 memory_v2{};
  memory_v2.version = kMemoryV2;
  ComputeMode mode{};
  PeerStatus status{};
  Handle* found = nullptr;
  const Result results[] = {
      nvmlSystemGetDriverVersion(text, sizeof text),
      nvmlDeviceGetCount(&number),
      nvmlDeviceGetCount_v2(&number),
      nvmlDeviceGetHandleByIndex(0, &found),
      nvmlDeviceGetHandleByIndex_v2(0, &found),
      nvmlDeviceGetHandleByPciBusId("00000000:01:00.0", &found),
      nvmlDeviceGetHandleByPciBusId_v2("00000000:01:00.0", &found),
      nvmlDeviceGetIndex(device, &number),
      nvmlDeviceGetMinorNumber(device, &number),
      nvmlDeviceGetName(device, text, sizeof text),
      nvmlDeviceGetUUID(device, text, sizeof text),
      nvmlDeviceGetHandleByUUID(text, &found),
      nvmlDeviceGetPciInfo_v3(device, &pci),
      nvmlDeviceGetMemoryInfo(device, &memory),
      nvmlDeviceGetMemoryInfo_v2(device, &memory_v2),
      nvmlDeviceGetComputeMode(device, &mode),
      nvmlDeviceGetCudaComputeCapability(device, &major, &minor),
      nvmlDeviceGetP2PStatus(device, device, PeerQuestion::read, &status),
  };
  std::vector<int> out;
  for (const Result result : results) out.push_back(static_cast<int>(result));
  return out;
}

bool all_are(int result, const std::vector<int>& results) {
  return !results.empty() &&
         std::all_of(results.begin(), results.end(), [&](int each) { return each == result; });
}

TEST(NvmlStart, NothingBeforeInitAndNothingAfterShutdown) {
  EXPECT_NVML(1, nvmlShutdown());
  EXPECT_TRUE(all_are(1, all_results(nullptr)));
  for (const NotSimulated function : kNotSimulated) EXPECT_EQ(function(nullptr, 0, nullptr), 1);
  ASSERT_NVML(0, nvmlInit_v2());
  Handle* device = nullptr;
  ASSERT_NVML(0, nvmlDeviceGetHandleByIndex_v2(0, &device));
  EXPECT_TRUE(all_are(0, all_results(device)));
  ASSERT_NVML(0, nvmlShutdown());
  EXPECT_TRUE(all_are(1, all_results(device)));
  for (const NotSimulated function : kNotSimulated) EXPECT_EQ(function(device, 0, nullptr), 1);
  EXPECT_NVML(1, nvmlShutdown());
}

TEST(NvmlStart, EveryInitWantsItsShutdown) {
  unsigned count = 0;
  ASSERT_NVML(0, nvmlInit());
  ASSERT_NVML(0, nvmlInitWithFlags(1));
  ASSERT_NVML(0, nvmlShutdown());
  EXPECT_NVML(0, nvmlDeviceGetCount_v2(&count));
  ASSERT_NVML(0, nvmlShutdown());
  EXPECT_NVML(1, nvmlDeviceGetCount_v2(&count));
}

TEST(NvmlStart, VersionsAndTextsNeedNoInit) {
  char text[80];
  ASSERT_NVML(0, nvmlSystemGetNVMLVersion(text, sizeof text));
  EXPECT_STREQ(text, "13.580.65.06");
  int version = 0;
  ASSERT_NVML(0, nvmlSystemGetCudaDriverVersion(&version));
  int driver = 0;
  ASSERT_CU(0, cuDriverGetVersion(&driver));
  EXPECT_EQ(version, driver);
  ASSERT_NVML(0, nvmlSystemGetCudaDriverVersion_v2(&version));
  EXPECT_EQ(version, driver);
  EXPECT_NVML(2, nvmlSystemGetNVMLVersion(nullptr, 80));
  EXPECT_NVML(2, nvmlSystemGetCudaDriverVersion(nullptr));
  EXPECT_NVML(2, nvmlSystemGetCudaDriverVersion_v2(nullptr));
  for (int code = -1; code < 40; ++code)
    EXPECT_NE(std::string(nvmlErrorString(static_cast<Result>(code))), "") << code;
  EXPECT_STREQ(nvmlErrorString(Result::insufficient_size), "Insufficient Size");
}

// Nothing is ever too short by less than it looks: the text with its NUL, or 7 and no byte written.
TEST_F(WithNvml, ShortBuffers) {
  const auto at_every_length = [](std::string_view wanted, auto get) {
    for (unsigned length = 0; length <= wanted.size() + 1; ++length) {
      std::vector<char> text(std::max(length, 1U), '?');
      const bool fits = length > wanted.size();
      EXPECT_NVML(fits ? 0 : 7, get(text.data(), length)) << length;
      if (fits) {
        EXPECT_EQ(wanted, text.data());
      } else {
        EXPECT_EQ(std::string(text.begin(), text.end()), std::string(text.size(), '?'));
      }
    }
  };
  at_every_length("580.65.06", nvmlSystemGetDriverVersion);
  at_every_length("13.580.65.06", nvmlSystemGetNVMLVersion);
  at_every_length("NVIDIA H100 80GB HBM3 (simulated)",
                  [&](char* text, unsigned length) { return nvmlDeviceGetName(device_, text, length); });
  char uuid[96];
  ASSERT_NVML(0, nvmlDeviceGetUUID(device_, uuid, sizeof uuid));
  at_every_length(uuid,
                  [&](char* text, unsigned length) { return nvmlDeviceGetUUID(device_, text, length); });
}

TEST_F(WithNvml, NotSimulatedIsNotSupported) {
  for (const NotSimulated function : kNotSimulated) {
    EXPECT_EQ(function(device_, 0, nullptr), 3);
    EXPECT_EQ(function(nullptr, 0, nullptr), 2);
  }
}

TEST(NvmlStart, Threads) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 200;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        // Its own start keeps the library started, whatever the others end.
        if (nvmlInit_v2() != Result::success) ++wrong;
        Handle* device = nullptr;
        if (nvmlDeviceGetHandleByIndex_v2(1, &device) != Result::success) ++wrong;
        for (const int result : all_results(device)) wrong += result != 0 ? 1 : 0;
        for (const NotSimulated function : kNotSimulated) wrong += function(device, 0, nullptr) != 3 ? 1 : 0;
        if (nvmlShutdown() != Result::success) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_NVML(1, nvmlShutdown());
}

}  // namespace
}  // namespace kshim::sim::test
