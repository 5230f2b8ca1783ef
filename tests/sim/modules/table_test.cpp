// SPDX-License-Identifier: Apache-2.0
// What each kind of image gives on each kind of device, as a module and as a library. The devices are in the
// order of the columns; a column holds the code of cuModuleLoadData, or for a library of the launch.
#include <algorithm>
#include <array>

#include "images.h"

namespace kshim::sim::test {
namespace {

constexpr std::size_t kColumns = 7;
const int kDevices = ::setenv("KSHIM_SIM_DEVICES", "6.1;7.5;8.6;9.0;10.0;12.0;12.1", 1);

struct Row {
  const char* name;
  Buffer image;
  std::array<int, kColumns> expected;
};

Buffer fatbin_of(std::initializer_list<unsigned> cubins, std::initializer_list<unsigned> ptxs = {}) {
  FatbinBuilder fatbin;
  for (const unsigned sm : cubins) add_cubin(fatbin, sm);
  for (const unsigned sm : ptxs) add_ptx(fatbin, sm, {8, 7});
  return fatbin.build();
}
Buffer specific(unsigned sm, Suffix suffix) {
  FatbinBuilder fatbin;
  return add_cubin(fatbin, sm, suffix).build();
}
Buffer damaged_payload() {
  FatbinBuilder fatbin;
  for (const unsigned sm : {61U, 75U, 86U, 90U, 100U, 120U}) fatbin.cubin(arch_of(sm), Buffer(256));
  return fatbin.build();
}
Buffer cut_off() {
  Buffer fatbin = fatbin_of({75, 90});
  kshim::test::put(fatbin, kshim::test::kFatbinHeader + kshim::test::kEntryPayloadSize,
                   std::uint64_t{1} << 40);
  return fatbin;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      // image                                                       6.1  7.5  8.6  9.0  10.0 12.0 12.1
      {"cubin 75", cubin(75), {209, 0, 209, 209, 209, 209, 209}},
      {"fatbin 75", fatbin_of({75}), {209, 0, 209, 209, 209, 209, 209}},
      {"fatbin 80 90", fatbin_of({80, 90}), {209, 209, 0, 0, 209, 209, 209}},
      {"fatbin 87", fatbin_of({87}), {209, 209, 209, 209, 209, 209, 209}},
      {"fatbin 120", fatbin_of({120}), {209, 209, 209, 209, 209, 0, 0}},
      {"fatbin 90a", specific(90, Suffix::a), {209, 209, 209, 0, 209, 209, 209}},
      {"fatbin 120f", specific(120, Suffix::f), {209, 209, 209, 209, 209, 0, 0}},
      {"fatbin 120a", specific(120, Suffix::a), {209, 209, 209, 209, 209, 0, 209}},
      {"fatbin ptx 75", fatbin_of({}, {75}), {209, 0, 0, 0, 0, 0, 0}},
      {"fatbin 75 ptx 90", fatbin_of({75}, {90}), {209, 0, 209, 0, 0, 0, 0}},
      {"ptx text 86", text(ptx(86)), {218, 218, 0, 0, 0, 0, 0}},
      {"ptx text 90a", text(ptx(90, "8.0", "a")), {218, 218, 218, 0, 218, 218, 218}},
      {"ptx text too new", text(ptx(75, "9.9")), {218, 222, 222, 222, 222, 222, 222}},
      {"ptx text cut off", text(ptx(50).substr(0, 150)), {218, 218, 218, 218, 218, 218, 218}},
      {"no image", text("hello"), {200, 200, 200, 200, 200, 200, 200}},
      {"empty fatbin", FatbinBuilder().build(), {209, 209, 209, 209, 209, 209, 209}},
      {"payloads that are no cubins", damaged_payload(), {200, 200, 200, 200, 200, 200, 200}},
      {"an entry beyond the end", cut_off(), {200, 200, 200, 200, 200, 200, 200}},
  };
  return table;
}

class Images : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(0, cuInit(0)); }
};

TEST_F(Images, AsModules) {
  for (std::size_t device = 0; device < kColumns; ++device) {
    const OnDevice here(static_cast<CUdevice>(device));
    for (const Row& row : rows()) {
      SCOPED_TRACE(std::string(row.name) + " on device " + std::to_string(device));
      CUmodule module = nullptr;
      EXPECT_CU(row.expected[device], cuModuleLoadData(&module, row.image.data()));
      if (module != nullptr) {
        CUfunction function = nullptr;
        EXPECT_CU(0, cuModuleGetFunction(&function, module, "first"));
        EXPECT_CU(500, cuModuleGetFunction(&function, module, "absent"));
        EXPECT_CU(0, cuModuleUnload(module));
        EXPECT_CU(400, cuModuleUnload(module));
      }
    }
  }
}

TEST_F(Images, AsLibrariesOfSeveralDevices) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    CUlibrary library = nullptr;
    const CUresult loaded =
        cuLibraryLoadData(&library, row.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    const bool container_is_bad =
        row.image == text("hello") || std::string_view(row.name) == "an entry beyond the end";
    EXPECT_CU(container_is_bad ? 200 : 0, loaded);
    if (loaded != CUDA_SUCCESS) continue;
    CUkernel kernel = nullptr;
    const bool anywhere = std::count(row.expected.begin(), row.expected.end(), 0) != 0;
    const CUresult found = cuLibraryGetKernel(&kernel, library, "first");
    EXPECT_CU(anywhere ? 0 : row.expected[0], found);
    if (found == CUDA_SUCCESS) {
      EXPECT_CU(500, cuLibraryGetKernel(&kernel, library, "absent"));
      for (std::size_t device = 0; device < kColumns; ++device) {
        const OnDevice here(static_cast<CUdevice>(device));
        CUdeviceptr pointer = 0;
        int value = 1;
        void* arguments[] = {&pointer, &value};
        EXPECT_CU(row.expected[device], cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 32, 1,
                                                       1, 0, nullptr, arguments, nullptr))
            << "device " << device;
        CUfunction function = nullptr;
        EXPECT_CU(row.expected[device], cuKernelGetFunction(&function, kernel));
        EXPECT_CU(row.expected[device], cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel,
                                                             static_cast<CUdevice>(device)));
      }
    }
    EXPECT_CU(0, cuLibraryUnload(library));
    EXPECT_CU(400, cuLibraryUnload(library));
  }
}

}  // namespace
}  // namespace kshim::sim::test
