// SPDX-License-Identifier: Apache-2.0
// Images for the simulator's module tests, one kernel "first" (a pointer and an int) unless said otherwise.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/cubin_builder.h"
#include "tests/support/fatbin_builder.h"

namespace kshim::sim::test {

using image::Suffix;
using kshim::test::arch_of;
using kshim::test::Buffer;
using kshim::test::build_cubin;
using kshim::test::CubinSpec;
using kshim::test::FatbinBuilder;

#define EXPECT_CU(expected, call) EXPECT_EQ(static_cast<CUresult>(expected), (call))
#define ASSERT_CU(expected, call) ASSERT_EQ(static_cast<CUresult>(expected), (call))

inline CubinSpec spec(unsigned sm, Suffix suffix = Suffix::none) {
  CubinSpec made;
  made.arch = arch_of(sm, suffix);
  made.kernels.push_back({.name = "first", .registers = 24, .parameters = {{0, 8}, {8, 4}}});
  return made;
}

inline Buffer cubin(unsigned sm, Suffix suffix = Suffix::none) { return build_cubin(spec(sm, suffix)); }

inline std::string ptx(unsigned sm, const std::string& version = "7.8", const std::string& suffix = "") {
  return ".version " + version + "\n.target sm_" + std::to_string(sm) + suffix +
         "\n.address_size 64\n"
         ".visible .global .align 4 .u32 counter = 7;\n"
         ".visible .entry first(\n  .param .u64 first_param_0,\n  .param .u32 first_param_1\n)\n{\n  "
         "ret;\n}\n";
}

inline Buffer text(const std::string& source) {
  Buffer bytes = kshim::test::to_buffer(source);
  bytes.push_back(std::byte{0});
  return bytes;
}

inline FatbinBuilder& add_cubin(FatbinBuilder& fatbin, unsigned sm, Suffix suffix = Suffix::none) {
  return fatbin.cubin(arch_of(sm, suffix), cubin(sm, suffix));
}
inline FatbinBuilder& add_ptx(FatbinBuilder& fatbin, unsigned sm, image::Version isa = {7, 8}) {
  const std::string version = std::to_string(isa.major) + "." + std::to_string(isa.minor);
  return fatbin.ptx(arch_of(sm), isa, ptx(sm, version));
}

/// A primary context of one device, current on this thread for the time of a scope.
class OnDevice {
 public:
  explicit OnDevice(CUdevice device) : device_(device) {
    CUcontext context = nullptr;
    EXPECT_CU(0, cuDevicePrimaryCtxRetain(&context, device));
    EXPECT_CU(0, cuCtxSetCurrent(context));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    EXPECT_CU(0, cuCtxSetCurrent(nullptr));
    EXPECT_CU(0, cuDevicePrimaryCtxRelease(device_));
  }

 private:
  CUdevice device_;
};

}  // namespace kshim::sim::test
