// SPDX-License-Identifier: Apache-2.0
// Arrays and texture and surface objects. Block-compressed, planar and video formats are not simulated (801).
#include "memory/array.h"

#include <algorithm>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "memory/allocations.h"

namespace kshim::sim {

Array::Array(Context& in, const CUDA_ARRAY3D_DESCRIPTOR& described, std::size_t bytes,
             std::uintptr_t memory) noexcept
    : context(in),
      descriptor(described),
      pitch(described.Width * bytes),
      rows(std::max<std::size_t>(described.Height, 1)),
      slices(std::max<std::size_t>(described.Depth, 1)),
      base(memory) {
  publish(this);
}

std::size_t element_bytes(CUarray_format format, unsigned channels) noexcept {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return std::size_t{2} * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return std::size_t{4} * channels;
    default:
      return 0;
  }
}

namespace {

CUresult make_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* described) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  if (out == nullptr || described == nullptr || described->Width == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned channels = described->NumChannels;
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t bytes = element_bytes(described->Format, channels);
  if (bytes == 0) return CUDA_ERROR_NOT_SUPPORTED;
  // Limits keep the product of the extents far from overflow: 131072 x 65536 x 16384 elements of 16 bytes.
  if (described->Width > 1U << 28 || described->Height > 1U << 17 || described->Depth > 1U << 14) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t total = described->Width * bytes * std::max<std::size_t>(described->Height, 1) *
                            std::max<std::size_t>(described->Depth, 1);
  Allocation memory;
  const CUresult result = allocate(*context, total, MemoryKind::device, 0, memory);
  if (result != CUDA_SUCCESS) return result;
  *out = (new Array(*context, *described, bytes, memory.base))->handle<CUarray>();
  return CUDA_SUCCESS;
}

/// A texture or surface: what it was made of, for queries.
struct Texture : Handled<Kind::texture> {
  Texture(const CUDA_RESOURCE_DESC& of, const CUDA_TEXTURE_DESC& with,
          const CUDA_RESOURCE_VIEW_DESC* seen) noexcept
      : resource(of),
        texture(with),
        has_view(seen != nullptr),
        view(seen != nullptr ? *seen : CUDA_RESOURCE_VIEW_DESC{}) {
    publish(this);
  }
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  bool has_view;
  CUDA_RESOURCE_VIEW_DESC view;
};

struct Surface : Handled<Kind::surface> {
  explicit Surface(const CUDA_RESOURCE_DESC& of) noexcept : resource(of) { publish(this); }
  CUDA_RESOURCE_DESC resource;
};

CUresult check_resource(const CUDA_RESOURCE_DESC& resource) noexcept {
  Allocation found;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return object_of<Array>(resource.res.array.hArray) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_LINEAR:
      return find_allocation(address_of(resource.res.linear.devPtr), found) ? CUDA_SUCCESS
                                                                            : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D:
      return find_allocation(address_of(resource.res.pitch2D.devPtr), found) ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;  // mipmapped arrays
  }
}

template <class T, class H>
T* object_at(H handle) noexcept {
  return object_of<T>(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(handle)));
}

}  // namespace

CUresult entry::cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* described) {
  return make_array(out, described);
}

CUresult entry::cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* described) {
  if (described == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR full{described->Width,  described->Height,      0,
                                     described->Format, described->NumChannels, 0};
  return make_array(out, &full);
}

CUresult entry::cuArrayDestroy(CUarray handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Array* array = object_of<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  drain_context(array->context);
  release(array->base, MemoryKind::device, MemoryKind::device);
  delete array;
  return CUDA_SUCCESS;
}

CUresult entry::cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Array* array = object_of<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult entry::cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR full;
  if (const CUresult result = entry::cuArray3DGetDescriptor_v2(&full, handle); result != CUDA_SUCCESS)
    return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = {full.Width, full.Height, full.Format, full.NumChannels};
  return CUDA_SUCCESS;
}

CUresult entry::cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                                  const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || resource == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_resource(*resource); result != CUDA_SUCCESS) return result;
  *out = static_cast<CUtexObject>((new Texture(*resource, *texture, view))->handle<std::uintptr_t>());
  return CUDA_SUCCESS;
}
CUresult entry::cuTexObjectDestroy(CUtexObject handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const auto* texture = object_at<Texture>(handle);
  if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  delete texture;
  return CUDA_SUCCESS;
}
CUresult entry::cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject handle) {
  const auto* texture = object_at<Texture>(handle);
  if (out == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = texture->resource;
  return CUDA_SUCCESS;
}
CUresult entry::cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject handle) {
  const auto* texture = object_at<Texture>(handle);
  if (out == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = texture->texture;
  return CUDA_SUCCESS;
}
CUresult entry::cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject handle) {
  const auto* texture = object_at<Texture>(handle);
  if (out == nullptr || texture == nullptr || !texture->has_view) return CUDA_ERROR_INVALID_VALUE;
  *out = texture->view;
  return CUDA_SUCCESS;
}
CUresult entry::cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_resource(*resource); result != CUDA_SUCCESS) return result;
  *out = static_cast<CUsurfObject>((new Surface(*resource))->handle<std::uintptr_t>());
  return CUDA_SUCCESS;
}
CUresult entry::cuSurfObjectDestroy(CUsurfObject handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const auto* surface = object_at<Surface>(handle);
  if (surface == nullptr) return CUDA_ERROR_INVALID_VALUE;
  delete surface;
  return CUDA_SUCCESS;
}
CUresult entry::cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject handle) {
  const auto* surface = object_at<Surface>(handle);
  if (out == nullptr || surface == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = surface->resource;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
