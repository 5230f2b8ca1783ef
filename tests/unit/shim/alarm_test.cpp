// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "failure/failure_notice.h"
#include "failure/kernel_name.h"

namespace kshim::shim {
namespace {

std::string formatted(const Notice& alarm, std::string_view report = "kshim-report/host.17.jsonl") {
  std::array<char, 4096> text{};
  return {text.data(), format_notice(alarm, report, text)};
}

TEST(Notice, SaysTheMostImportantThingFirstAndEndsWithTheCommand) {
  const std::array<std::string_view, 2> have{"sm_75", "compute_75"};
  Notice alarm;
  alarm.code = 209;
  alarm.api = "cuLaunchKernel";
  alarm.kernel = "_Z5saxpyifPKfPf";
  alarm.object = "/home/me/saxpy";
  alarm.device = 0;
  alarm.device_name = "NVIDIA GeForce GTX 1080 Ti";
  alarm.device_arch = "sm_61";
  alarm.have = have;
  alarm.need = "sm_61";
  alarm.python_file = "train.py";
  alarm.python_line = 12;
  alarm.python_function = "main";
  EXPECT_EQ(formatted(alarm),
            "kshim: kernel saxpy has no image for GPU 0 (NVIDIA GeForce GTX 1080 Ti, sm_61)\n"
            "kshim:   in         /home/me/saxpy\n"
            "kshim:   built for  sm_75, compute_75\n"
            "kshim:   needs      sm_61, or PTX for compute_61 or older\n"
            "kshim:   call       cuLaunchKernel: CUDA_ERROR_NO_BINARY_FOR_GPU (209)\n"
            "kshim:   from       train.py:12, in main\n"
            "kshim:   explain    kshim analyze kshim-report/host.17.jsonl\n");
}

TEST(Notice, NamesTheErrorAsTheCalledInterfaceDoes) {
  Notice alarm;
  alarm.code = 209;
  alarm.runtime = true;
  alarm.api = "cudaLaunchKernel";
  EXPECT_NE(formatted(alarm).find("cudaLaunchKernel: cudaErrorNoKernelImageForDevice (209)"),
            std::string::npos);
}

TEST(Notice, ACompilerSaysWhatItCompilesFor) {
  const std::array<std::string_view, 2> known{"compute_75", "compute_80"};
  Notice alarm;
  alarm.code = 5;
  alarm.code_name = "NVRTC_ERROR_INVALID_OPTION";
  alarm.api = "nvrtcCompileProgram";
  alarm.compiler = "NVRTC";
  alarm.compiler_version = "13.0";
  alarm.asked = "compute_61";
  alarm.object = "/usr/lib/libnvrtc.so.13";
  alarm.have = known;
  EXPECT_EQ(formatted(alarm, ""),
            "kshim: NVRTC 13.0 does not compile for compute_61\n"
            "kshim:   in         /usr/lib/libnvrtc.so.13\n"
            "kshim:   compiles   compute_75, compute_80\n"
            "kshim:   call       nvrtcCompileProgram: NVRTC_ERROR_INVALID_OPTION (5)\n");
}

TEST(Notice, ShowsOtherErrorsByTheirMessage) {
  Notice alarm;
  alarm.code = 2;
  alarm.api = "cuLaunchKernel";
  EXPECT_TRUE(formatted(alarm, "").starts_with("kshim: cuLaunchKernel failed on the GPU: out of memory\n"))
      << formatted(alarm, "");
  EXPECT_EQ(formatted(alarm, "").find("analyze"), std::string::npos);
}

TEST(Notice, IsOneScreenWhateverComesIn) {
  const std::string endless(10'000, 'x');
  std::vector<std::string_view> have(200, "sm_100a");
  Notice alarm;
  alarm.code = 209;
  alarm.api = endless;
  alarm.kernel = endless;
  alarm.object = endless;
  alarm.device = 7;
  alarm.device_name = endless;
  alarm.have = have;
  alarm.need = "sm_61";
  alarm.python_file = endless;
  alarm.python_function = endless;
  const std::string text = formatted(alarm, endless);
  EXPECT_LE(text.size(), 4096U);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 8);
  EXPECT_NE(text.find("kshim analyze xxx"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Notice, NeverPassesControlCharactersToATerminal) {
  Notice alarm;
  alarm.code = 209;
  alarm.kernel = "\x1b]0;title\x07";
  alarm.object =
      "/tmp/a\nb\xc2\x9b"
      "31m/\xff/größe";
  const std::string text = formatted(alarm, "\x1b[31m");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("/tmp/a?b??31m/?/größe"), std::string::npos) << text;
}

TEST(KernelName, IsWhatPeopleCallIt) {
  EXPECT_EQ(short_kernel_name("_Z5saxpyifPKfPf").view(), "saxpy");
  EXPECT_EQ(short_kernel_name("_ZN2at6native6kernelILi128EfEEvT0_").view(), "at::native::kernel<...>");
  EXPECT_EQ(short_kernel_name("_Z6reduceIfEvPT_").view(), "reduce<...>");
  EXPECT_EQ(short_kernel_name("_ZL5localv").view(), "local");
  EXPECT_EQ(short_kernel_name("_ZN12_GLOBAL__N_15scaleEPf").view(), "(anonymous namespace)::scale");
  EXPECT_EQ(short_kernel_name("plain_c_name").view(), "plain_c_name");
  EXPECT_EQ(short_kernel_name("_Z999x").view(), "_Z999x");
  EXPECT_EQ(short_kernel_name("_Z").view(), "_Z");
}

}  // namespace
}  // namespace kshim::shim
