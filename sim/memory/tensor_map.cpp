// SPDX-License-Identifier: Apache-2.0
// Descriptors for the Tensor Memory Accelerator: the requirements that cuda.h lists are checked, and the
// arguments are kept in the opaque words, in an order of our own: no kernel reads them.
#include <algorithm>
#include <cstring>

#include "context/context.h"
#include "entry/entry.h"

namespace kshim::sim {
namespace {

constexpr cuuint64_t kMaxDimBytes = cuuint64_t{1} << 32;
constexpr cuuint64_t kStrideLimit = cuuint64_t{1} << 40;
constexpr cuuint32_t kMaxDims = 5;
constexpr cuuint32_t kMaxBoxBytes = 256;
constexpr cuuint32_t kMaxColumnBytes = 1024;
constexpr cuuint32_t kMaxStepBytes = 8;
constexpr unsigned kInnerBits = 128;    ///< the innermost side of a box is a multiple of 16 bytes
constexpr cuuint32_t kPackedBox = 128;  ///< elements of the packed types that are aligned to 16 bytes

/// What all kinds of descriptors have in common.
struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

/// 0 for a type that does not exist.
unsigned bits_of(CUtensorMapDataType type) noexcept {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 32;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:  // both lie on 16 bytes for 16 elements
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 8;
    default:
      return 0;
  }
}

bool is_padded(CUtensorMapDataType type) noexcept {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

bool is_floating(CUtensorMapDataType type) noexcept {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

/// Bytes that the innermost side of a box may have under a swizzle.
cuuint64_t swizzle_span(CUtensorMapSwizzle swizzle) noexcept {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return UINT64_MAX;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    default:
      return 128;
  }
}

bool good_swizzle(const Tensor& tensor) noexcept {
  if (tensor.swizzle < CU_TENSOR_MAP_SWIZZLE_NONE || tensor.swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) {
    return false;
  }
  if (tensor.interleave == CU_TENSOR_MAP_INTERLEAVE_32B) return tensor.swizzle == CU_TENSOR_MAP_SWIZZLE_32B;
  if (!is_padded(tensor.type)) return true;
  return tensor.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || tensor.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
         tensor.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
         (tensor.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
          tensor.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
}

bool good_modes(const Tensor& tensor) noexcept {
  if (tensor.interleave < CU_TENSOR_MAP_INTERLEAVE_NONE || tensor.interleave > CU_TENSOR_MAP_INTERLEAVE_32B) {
    return false;
  }
  if (tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE &&
      tensor.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) {
    return false;
  }
  if (tensor.promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE ||
      tensor.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) {
    return false;
  }
  const bool filled = tensor.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  if (!filled && tensor.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) return false;
  return good_swizzle(tensor) && (!filled || is_floating(tensor.type));
}

cuuint64_t alignment_of(const Tensor& tensor) noexcept {
  return tensor.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_padded(tensor.type) ? 32 : 16;
}

bool good_region(const Tensor& tensor, cuuint32_t least_rank) noexcept {
  if (bits_of(tensor.type) == 0 || tensor.rank < least_rank || tensor.rank > kMaxDims) return false;
  if (tensor.dims == nullptr || tensor.steps == nullptr) return false;
  if (tensor.rank > 1 && tensor.strides == nullptr) return false;
  const cuuint64_t alignment = alignment_of(tensor);
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.address);
  if (address == 0 || address % alignment != 0) return false;
  if (is_padded(tensor.type) && tensor.dims[0] % kPackedBox != 0) return false;
  if (tensor.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B && tensor.dims[0] % 2 != 0) return false;
  const bool plain = tensor.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
  for (cuuint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 0 || tensor.dims[i] > kMaxDimBytes) return false;
    const bool ignored = i == 0 && plain;
    if (!ignored && (tensor.steps[i] == 0 || tensor.steps[i] > kMaxStepBytes)) return false;
    if (i + 1 < tensor.rank && (tensor.strides[i] % alignment != 0 || tensor.strides[i] >= kStrideLimit)) {
      return false;
    }
  }
  return good_modes(tensor);
}

/// `inner`: elements along the innermost side of what is moved at once.
bool good_inner(const Tensor& tensor, cuuint32_t inner) noexcept {
  if (is_padded(tensor.type) && inner != kPackedBox) return false;
  return tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
         cuuint64_t{inner} * bits_of(tensor.type) / 8 <= swizzle_span(tensor.swizzle);
}

bool good_box(const Tensor& tensor, const cuuint32_t* box) noexcept {
  if (box == nullptr) return false;
  const bool in_range =
      std::all_of(box, box + tensor.rank, [](cuuint32_t side) { return side != 0 && side <= kMaxBoxBytes; });
  if (!in_range || !good_inner(tensor, box[0])) return false;
  return tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
         cuuint64_t{box[0]} * bits_of(tensor.type) % kInnerBits == 0;
}

/// Corners of an im2col box: the fewer dimensions, the more bits an offset has.
bool good_corners(cuuint32_t rank, const int* lower, const int* upper) noexcept {
  if (lower == nullptr || upper == nullptr) return false;
  constexpr int kReach[] = {32768, 128, 16};  // by rank, from 3
  const int reach = kReach[rank - 3];
  const auto outside = [&](int offset) { return offset < -reach || offset >= reach; };
  return std::none_of(lower, lower + rank - 2, outside) && std::none_of(upper, upper + rank - 2, outside);
}

CUresult require_tensor_maps(const CUtensorMap* out) noexcept {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  int supported = 0;
  device_attribute(context->device, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, supported);
  if (supported == 0) return CUDA_ERROR_NOT_SUPPORTED;
  constexpr std::uintptr_t kAlignment = 64;
  const auto address = reinterpret_cast<std::uintptr_t>(out);
  return address != 0 && address % kAlignment == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Address, alignment and rank of the type, dimensions, strides: 12 of 16 words at most.
void keep(const Tensor& tensor, CUtensorMap* out) noexcept {
  std::memset(out->opaque, 0, sizeof out->opaque);
  out->opaque[0] = reinterpret_cast<std::uintptr_t>(tensor.address);
  out->opaque[1] = alignment_of(tensor);
  out->opaque[2] = cuuint64_t{tensor.rank} << 32 | static_cast<cuuint32_t>(tensor.type);
  std::copy_n(tensor.dims, tensor.rank, out->opaque + 3);
  if (tensor.rank > 1) std::copy_n(tensor.strides, tensor.rank - 1, out->opaque + 3 + kMaxDims);
}

}  // namespace

CUresult entry::cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                       void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                       const cuuint32_t* box, const cuuint32_t* steps,
                                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (const CUresult result = require_tensor_maps(out); result != CUDA_SUCCESS) return result;
  const Tensor tensor{type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill};
  const cuuint32_t least_rank = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3;
  if (!good_region(tensor, least_rank) || !good_box(tensor, box)) return CUDA_ERROR_INVALID_VALUE;
  keep(tensor, out);
  return CUDA_SUCCESS;
}

CUresult entry::cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                        void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                        const int* lower, const int* upper, cuuint32_t channels,
                                        cuuint32_t pixels, const cuuint32_t* steps,
                                        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (const CUresult result = require_tensor_maps(out); result != CUDA_SUCCESS) return result;
  const Tensor tensor{type, rank, address, dims, strides, steps, interleave, swizzle, promotion, fill};
  if (!good_region(tensor, 3) || !good_corners(rank, lower, upper) || channels > kMaxBoxBytes ||
      pixels > kMaxColumnBytes || !good_inner(tensor, channels)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  keep(tensor, out);
  return CUDA_SUCCESS;
}

CUresult entry::cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  if (const CUresult result = require_tensor_maps(map); result != CUDA_SUCCESS) return result;
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const cuuint64_t alignment = map->opaque[1];
  if (value == 0 || (alignment != 16 && alignment != 32) || value % alignment != 0)
    return CUDA_ERROR_INVALID_VALUE;
  map->opaque[0] = value;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
