// SPDX-License-Identifier: Apache-2.0
// Numbers and names of errors, old ones and misquoted ones.
#include "analyzer/input/log/lookup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/verbs/explain.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

int code_of(const char* name) {
  const NamedError named = find_by_name(name);
  return named.error == nullptr ? -1 : named.error->code;
}

TEST(Lookup, NamesOfTheHeaders) {
  EXPECT_EQ(code_of("CUDA_ERROR_NO_BINARY_FOR_GPU"), 209);
  EXPECT_EQ(code_of("cudaErrorNoKernelImageForDevice"), 209);
  EXPECT_EQ(code_of("cuda_error_no_binary_for_gpu"), 209);
  EXPECT_EQ(code_of("CUDAERRORINVALIDDEVICEFUNCTION"), 98);
}

TEST(Lookup, EveryNameOfEveryErrorIsFound) {
  for (int code = 0; code < 1000; ++code) {
    const CudaError* error = find_cuda_error(code);
    if (error == nullptr) continue;
    for (const char* name : {error->driver_name, error->runtime_name}) {
      if (name == nullptr) continue;
      EXPECT_EQ(code_of(name), code) << name;
    }
  }
}

TEST(Lookup, WrongNamesThatPeopleQuote) {
  const NamedError named = find_by_name("cudaErrorNoKernelImageAvailable");
  ASSERT_NE(named.error, nullptr);
  EXPECT_EQ(named.error->code, 209);
  EXPECT_EQ(named.really, "cudaErrorNoKernelImageForDevice");
  EXPECT_FALSE(named.guessed);
}

TEST(Lookup, ASlipOfTheKeyboard) {
  const NamedError named = find_by_name("CUDA_ERROR_NO_BINARY_FOR_GPUS");
  ASSERT_NE(named.error, nullptr);
  EXPECT_EQ(named.error->code, 209);
  EXPECT_TRUE(named.guessed);
}

TEST(Lookup, TheBeginningOfOneNameAlone) {
  EXPECT_EQ(code_of("cuda_error_no_binary"), 209);
  EXPECT_EQ(code_of("cudaErrorJitCompilerNot"), 221);
  EXPECT_NE(code_of("cudaErrorInvalid"), 1);  // of many
  EXPECT_EQ(bare_number("Error code: 209"), 209);
  EXPECT_EQ(bare_number("# 0xd1"), 209);
  EXPECT_EQ(bare_number("epoch 209"), std::nullopt);
  EXPECT_EQ(bare_number("HTTP error 209"), std::nullopt);
}

TEST(Lookup, WhatIsNoNameStaysNone) {
  for (const char* name :
       {"cudaMalloc", "hello", "", "cuda", "error", "CUDA_ERROR_", "cudaErrorXyzzyXyzzyXyzzy"})
    EXPECT_EQ(code_of(name), -1) << name;
}

TEST(Lookup, OldNumbersMeanWhatTheyMeant) {
  ASSERT_NE(find_old_code(48), nullptr);
  EXPECT_EQ(find_old_code(48)->now, 209);
  EXPECT_EQ(find_old_code(47)->now, 200);
  EXPECT_EQ(find_old_code(8)->now, 98);
  EXPECT_EQ(find_old_code(35), nullptr);  // the same in both
  for (int number = 0; number < 200; ++number) {
    const OldCode* old = find_old_code(number);
    if (old == nullptr) continue;
    const CudaError* now = find_cuda_error(old->now);
    ASSERT_NE(now, nullptr) << number;
    EXPECT_EQ(now->runtime_name, old->name) << number;
  }
}

TEST(Lookup, ANumberWithTwoMeaningsShowsBoth) {
  const Explanation explanation = explain_text("8", {});
  EXPECT_EQ(explanation.asked, Asked::number);
  ASSERT_EQ(explanation.meanings.size(), 2U);
  EXPECT_EQ(explanation.meanings[0].code, 8);
  EXPECT_EQ(explanation.meanings[1].code, 98);
  for (const char* number : {"47", "48"}) EXPECT_EQ(explain_text(number, {}).meanings.size(), 1U) << number;
}

TEST(Lookup, NumbersThatAreNone) {
  for (const char* number : {"123456", "11111111111111111111", "-209", "209x", "0x", "1.5"})
    EXPECT_FALSE(explain_text(number, {}).recognized) << number;
  EXPECT_TRUE(explain_text("0xd1", {}).recognized);
  EXPECT_TRUE(explain_text("0", {}).recognized);
}

TEST(Gpus, TheLongestNameCounts) {
  const auto one = [](const char* text) {
    const auto found = gpus_named_in(text);
    return found.size() == 1 ? std::string(image::to_name(found.front().cc).view())
                             : std::to_string(found.size());
  };
  EXPECT_EQ(one("NVIDIA GeForce RTX 4090"), "8.9");
  EXPECT_EQ(one("on my gtx 1080ti."), "6.1");
  EXPECT_EQ(one("GTX TITAN X"), "5.2");
  EXPECT_EQ(one("NVIDIA TITAN X (Pascal)"), "6.1");
  EXPECT_EQ(one("Tesla V100-SXM2-32GB"), "7.0");
  EXPECT_EQ(one("GeForce GTX 960M"), "5.0");
  EXPECT_EQ(one("GeForce GTX 960"), "5.2");
  EXPECT_EQ(one("Quadro RTX 5000"), "7.5");
  EXPECT_EQ(one("NVIDIA RTX 5000 Ada Generation"), "8.9");
  EXPECT_EQ(one("NVIDIA A100-SXM4-80GB"), "8.0");
  EXPECT_EQ(one("RTX 3080 + RTX 4080 SUPER"), "2");
  EXPECT_EQ(one("a macro of M4, and P4 and T4 hours"), "0");
  EXPECT_EQ(one("Tesla T4"), "7.5");
  EXPECT_EQ(one("the 5090 phone line, RTX50900"), "0");
  EXPECT_EQ(one("host=p100-node3"), "0");
  EXPECT_EQ(one("gpu-p40-02:~$ python train.py"), "0");
  EXPECT_EQ(one("h200:221:300 [3] NCCL INFO"), "0");
  EXPECT_EQ(one("GRID V100-8C"), "7.0");
  EXPECT_EQ(one("NVIDIA-A100-PCIE-40GB"), "8.0");
  EXPECT_EQ(one("VGA compatible controller: NVIDIA Corporation TU116 (rev a1)"), "7.5");
  EXPECT_EQ(one("3D controller: NVIDIA Corporation AD104M (rev a1)"), "8.9");
  EXPECT_EQ(one("NVIDIA Corporation TU104GL [Tesla T4]"), "2");  // the chip and the card
  EXPECT_EQ(one("NVIDIA Corporation GB10B"), "11.0");            // 10.1 before CUDA 13
  EXPECT_EQ(one("libga102_util.so, model_ga102"), "0");
  EXPECT_EQ(one("a P40 24GB"), "6.1");
  EXPECT_EQ(one("M40 12GB in a server"), "5.2");
}

TEST(Gpus, EveryNameIsOfAGpuThatThereIsAndFindsItself) {
  for (const GpuNameRow& row : gpu_names()) {
    EXPECT_NE(find_gpu(row.cc), nullptr) << row.name;
    const auto found = gpus_named_in("NVIDIA " + std::string(row.name));
    ASSERT_EQ(found.size(), 1U) << row.name;
    EXPECT_EQ(found.front().cc, row.cc) << row.name;
  }
}

}  // namespace
}  // namespace kshim::test
