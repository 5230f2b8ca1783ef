// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cuda/call_args.h"
#include "failure/failure_info.h"
#include "process/loaded_objects.h"

namespace kshim::shim {
namespace {

FailureInfo failed(Hook hook, abi::Result code, std::string_view kernel = {}) {
  FailureInfo facts;
  facts.hook = hook;
  facts.stage = row_of(hook).stage;
  facts.code = code;
  facts.device = 0;
  facts.layer_count = 1;
  facts.kernel = kernel;
  facts.owner = identity_of_file("/opt/app/libapp.so");
  facts.object = facts.owner;
  facts.module.code.object = facts.owner;
  facts.module.code.offset = 0x1000;
  return facts;
}

TEST(FailureKey, OneErrorIsOneFailureHoweverItIsReached) {
  const auto launch = key_of(failed(Hook::cuLaunchKernel, 209, "_Z1kv"));
  EXPECT_EQ(launch, key_of(failed(Hook::cuLaunchKernelEx, 209, "_Z1kv")));
  // Without a name, nothing says that it is the same kernel.
  EXPECT_NE(key_of(failed(Hook::cuGraphLaunch, 1)), key_of(failed(Hook::cuLaunchKernelEx, 1)));
  EXPECT_EQ(key_of(failed(Hook::__cudaLaunchKernel, 35, "_Z1kv")),
            key_of(failed(Hook::cudaLaunchKernel, 35, "_Z1kv")));
}

TEST(FailureKey, WhatDiffersIsAnother) {
  const FailureInfo base = failed(Hook::cuLibraryGetKernel, 209, "_Z1kv");
  FailureInfo kernel = base, code = base, device = base, offset = base, stage = base;
  kernel.kernel = "_Z1lv";
  code.code = 500;
  device.device = 1;
  offset.module.code.offset = 0x2000;
  stage.stage = Stage::launch;
  for (const FailureInfo& other : {kernel, code, device, offset, stage})
    EXPECT_NE(key_of(base), key_of(other));
  // Without device code in it, the call is what tells failures apart.
  EXPECT_NE(key_of(failed(Hook::cuMemAlloc_v2, 2)), key_of(failed(Hook::cuMemAllocManaged, 2)));
  // One place in a program calls all functions (bindings, an FFI): the same image by two of them.
  for (const abi::Result refused : {200, 209, 222})
    EXPECT_NE(key_of(failed(Hook::cuModuleLoadData, refused)),
              key_of(failed(Hook::cuLibraryLoadData, refused)));
}

TEST(FailureKey, AFaultOfTheDeviceComesBackFromEveryCall) {
  EXPECT_EQ(key_of(failed(Hook::cuMemAlloc_v2, 700)), key_of(failed(Hook::cuStreamSynchronize, 700)));
  EXPECT_NE(key_of(failed(Hook::cuMemAlloc_v2, 700)), key_of(failed(Hook::cuStreamSynchronize, 719)));
}

TEST(FailureKey, ALibraryThatTriesImagesIsOneFailure) {
  // cuSPARSELt's start-up: thousands of fatbins, none of which anybody misses.
  FailureInfo first = failed(Hook::cuModuleLoadFatBinary, 209);
  first.owner = identity_of_file("/opt/nvidia/libcusparseLt.so.0");
  FailureInfo second = first;
  second.module.code.offset = 0x9000;
  EXPECT_EQ(key_of(first), key_of(second));
  EXPECT_FALSE(deserves_notice(first));
  FailureInfo launch = first;
  launch.stage = Stage::launch;
  EXPECT_TRUE(deserves_notice(launch));
  EXPECT_NE(key_of(first), key_of(launch));
}

TEST(Notice, IsForFailedLaunchesLookUpsAndLoadsOfTheProgram) {
  EXPECT_TRUE(deserves_notice(failed(Hook::cuLaunchKernel, 209, "_Z1kv")));
  EXPECT_TRUE(deserves_notice(failed(Hook::cuModuleLoadData, 218)));
  EXPECT_TRUE(deserves_notice(failed(Hook::cuModuleGetFunction, 500, "_Z1kv")));
  EXPECT_FALSE(deserves_notice(failed(Hook::cuModuleGetGlobal_v2, 500)));
  EXPECT_TRUE(deserves_notice(failed(Hook::cuModuleGetGlobal_v2, 209)));
  EXPECT_FALSE(deserves_notice(failed(Hook::cuInit, 100)));
  EXPECT_FALSE(deserves_notice(failed(Hook::cuMemAlloc_v2, 2)));
}

TEST(FailureInfo, BothLayersOfOneErrorAreNamed) {
  const char* const name = "_Z1kv";
  DriverFailure driver;
  driver.facts.hook = Hook::cuLibraryGetKernel;
  driver.facts.code = 209;
  driver.facts.symbol = name;
  driver.device = 1;
  CallArgs runtime;
  runtime.hook = Hook::__cudaGetKernel;
  runtime.code = 209;
  FailureInfo facts;
  static Modules g_modules;
  static DriverInfo g_driver;
  static HandleNames g_names;
  gather(&driver, &runtime, {g_modules, g_driver, g_names, 1}, facts);
  ASSERT_EQ(facts.layer_count, 2U);
  EXPECT_EQ(facts.layers[0].layer, "driver");
  EXPECT_EQ(facts.layers[0].api, "cuLibraryGetKernel");
  EXPECT_EQ(facts.layers[0].name, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_EQ(facts.layers[1].layer, "runtime");
  EXPECT_EQ(facts.layers[1].name, "cudaErrorNoKernelImageForDevice");
  EXPECT_EQ(facts.stage, Stage::launch);
  EXPECT_EQ(facts.kernel, name);
  EXPECT_EQ(facts.device, 1U);
}

}  // namespace
}  // namespace kshim::shim
