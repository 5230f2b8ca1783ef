// SPDX-License-Identifier: Apache-2.0
#include "with_device.h"

namespace kshim::sim::test {
namespace {

class Links : public WithDevice {
 protected:
  void SetUp() override {
    WithDevice::SetUp();
    ASSERT_CU(0, cuLinkCreate(0, nullptr, nullptr, &state_));
  }
  void TearDown() override {
    EXPECT_CU(0, cuLinkDestroy(state_));
    WithDevice::TearDown();
  }
  CUresult add(CUjitInputType type, Buffer image) {
    return cuLinkAddData(state_, type, image.data(), image.size(), "name", 0, nullptr, nullptr);
  }
  CUlinkState state_ = nullptr;
};

TEST_F(Links, PtxTextsBecomeOneModule) {
  std::string other = ptx(80, "7.8");
  other.replace(other.find("first("), 5, "other");
  ASSERT_CU(0, add(CU_JIT_INPUT_PTX, text(ptx(75))));
  ASSERT_CU(0, add(CU_JIT_INPUT_PTX, text(other)));
  void* made = nullptr;
  std::size_t size = 0;
  ASSERT_CU(0, cuLinkComplete(state_, &made, &size));
  const auto* bytes = static_cast<const std::byte*>(made);
  const Buffer copy(bytes, bytes + size);
  CUmodule module = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, copy.data()));
  CUfunction function = nullptr;
  EXPECT_CU(0, cuModuleGetFunction(&function, module, "first"));
  EXPECT_CU(0, cuModuleGetFunction(&function, module, "other"));
}

TEST_F(Links, ACubinIsItself) {
  ASSERT_CU(0, add(CU_JIT_INPUT_CUBIN, cubin(90)));
  void* made = nullptr;
  std::size_t size = 0;
  ASSERT_CU(0, cuLinkComplete(state_, &made, &size));
  EXPECT_EQ(size, cubin(90).size());
  ASSERT_CU(0, add(CU_JIT_INPUT_CUBIN, cubin(90)));
  EXPECT_CU(801, cuLinkComplete(state_, &made, &size));  // two of them would have to be linked
}

TEST_F(Links, ALibraryAddsNothing) {
  ASSERT_CU(0, add(CU_JIT_INPUT_CUBIN, cubin(90)));
  ASSERT_CU(0, add(CU_JIT_INPUT_LIBRARY, text("!<arch>\nwhatever")));
  void* made = nullptr;
  std::size_t size = 0;
  ASSERT_CU(0, cuLinkComplete(state_, &made, &size));
  EXPECT_EQ(size, cubin(90).size());
}

TEST_F(Links, InputsAreJudgedWhenTheyAreAdded) {
  EXPECT_CU(209, add(CU_JIT_INPUT_CUBIN, cubin(75)));
  EXPECT_CU(218, add(CU_JIT_INPUT_PTX, text(ptx(100, "8.6"))));
  EXPECT_CU(222, add(CU_JIT_INPUT_PTX, text(ptx(75, "9.9"))));
  EXPECT_CU(200, add(CU_JIT_INPUT_FATBINARY, text("hello")));
  EXPECT_CU(801, add(CU_JIT_INPUT_OBJECT, text("\x7f"
                                               "ELF")));
  EXPECT_CU(200, add(CU_JIT_INPUT_LIBRARY, text("no archive")));
  EXPECT_CU(301, cuLinkAddFile(state_, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr));
  void* made = nullptr;
  std::size_t size = 0;
  EXPECT_CU(1, cuLinkComplete(state_, &made, &size));  // nothing was taken
}

}  // namespace
}  // namespace kshim::sim::test
