// SPDX-License-Identifier: Apache-2.0
// cuTensorMap*: each requirement that cuda.h lists, one broken at a time.
#include <cstdint>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

/// Arguments that are in order: 64 x 64 halves, boxes of a whole row.
struct Tiled {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 2;
  std::uintptr_t address = 4096;
  cuuint64_t dims[5] = {64, 64, 8, 8, 8};
  cuuint64_t strides[4] = {128, 8192, 65536, 524288};
  cuuint32_t box[5] = {64, 64, 1, 1, 1};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  std::size_t offset = 0;  ///< of the descriptor from its alignment

  CUresult encode() const {
    alignas(128) unsigned char bytes[2 * sizeof(CUtensorMap)];
    return cuTensorMapEncodeTiled(reinterpret_cast<CUtensorMap*>(bytes + offset), type, rank,
                                  reinterpret_cast<void*>(address), dims, strides, box, steps, interleave,
                                  swizzle, promotion, fill);
  }
};

class TensorMap : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(0, cuInit(0));
    ASSERT_CU(0, cuCtxCreate(&context_, nullptr, 0, 1));  // 9.0
  }
  void TearDown() override { EXPECT_CU(0, cuCtxDestroy(context_)); }
  CUcontext context_ = nullptr;
};

TEST_F(TensorMap, InOrder) {
  EXPECT_CU(0, Tiled{}.encode());
  for (cuuint32_t rank = 1; rank <= 5; ++rank) {
    Tiled map;
    map.rank = rank;
    EXPECT_CU(0, map.encode()) << rank;
  }
  Tiled filled;
  filled.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  EXPECT_CU(0, filled.encode());
  Tiled first_step_is_ignored;
  first_step_is_ignored.steps[0] = 0;
  EXPECT_CU(0, first_step_is_ignored.encode());
  Tiled interleaved;
  interleaved.rank = 3;
  interleaved.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
  interleaved.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  EXPECT_CU(0, interleaved.encode());
  Tiled packed;
  packed.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
  packed.dims[0] = 128;
  packed.box[0] = 128;
  EXPECT_CU(0, packed.encode());
}

TEST_F(TensorMap, OneThingWrong) {
  const auto refused = [](auto&& spoil) {
    Tiled map;
    spoil(map);
    return map.encode() == CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT_TRUE(refused([](Tiled& map) { map.offset = 32; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.rank = 0; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.rank = 6; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.address = 0; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.address = 4104; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.dims[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.dims[1] = (cuuint64_t{1} << 32) + 1; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.strides[0] = 130; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.strides[0] = cuuint64_t{1} << 40; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.box[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.box[1] = 257; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.box[0] = 4; }));    // 8 bytes: no multiple of 16
  EXPECT_TRUE(refused([](Tiled& map) { map.box[0] = 128; }));  // 256 bytes: more than the swizzle's 128
  EXPECT_TRUE(refused([](Tiled& map) { map.steps[1] = 0; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.steps[1] = 9; }));
  EXPECT_TRUE(refused([](Tiled& map) { map.swizzle = static_cast<CUtensorMapSwizzle>(7); }));
  EXPECT_TRUE(refused([](Tiled& map) { map.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }));  // of rank 2
  EXPECT_TRUE(refused([](Tiled& map) { map.interleave = static_cast<CUtensorMapInterleave>(3); }));
  EXPECT_TRUE(refused([](Tiled& map) {
    map.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  }));
  EXPECT_TRUE(refused([](Tiled& map) {
    map.rank = 3;
    map.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;  // wants CU_TENSOR_MAP_SWIZZLE_32B
  }));
  EXPECT_TRUE(refused([](Tiled& map) { map.type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B; }));  // 64: no 128
}

TEST_F(TensorMap, Im2col) {
  const Tiled region;
  CUtensorMap map;
  const int lower[] = {-1, -1, -1};
  const int upper[] = {1, 1, 1};
  const int far[] = {127, 127, 127};
  const auto encode = [&](cuuint32_t rank, const int* from, cuuint32_t channels, cuuint32_t pixels) {
    return cuTensorMapEncodeIm2col(&map, region.type, rank, reinterpret_cast<void*>(region.address),
                                   region.dims, region.strides, from, upper, channels, pixels, region.steps,
                                   region.interleave, region.swizzle, region.promotion, region.fill);
  };
  EXPECT_CU(0, encode(4, lower, 64, 1024));
  EXPECT_CU(0, encode(4, far, 64, 1024));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(5, far, 64, 1024));  // 16 is the end of three offsets
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(2, lower, 64, 1024));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(4, lower, 65, 1024));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(4, lower, 64, 1025));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, encode(4, nullptr, 64, 1024));
  EXPECT_CU(0, cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(8192)));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(8200)));
}

TEST(TensorMapElsewhere, NeedsAContextOfAHopper) {
  ASSERT_CU(0, cuInit(0));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, Tiled{}.encode());
  CUcontext context = nullptr;
  ASSERT_CU(0, cuCtxCreate(&context, nullptr, 0, 0));  // 8.6
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, Tiled{}.encode());
  EXPECT_CU(0, cuCtxDestroy(context));
}

}  // namespace
}  // namespace kshim::sim::test
