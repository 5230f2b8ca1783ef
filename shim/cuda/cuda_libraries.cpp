// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_libraries.h"

#include "guest/slices.h"
#include "guest/text_buffer.h"

namespace kshim::shim {

bool names_libcuda(std::string_view path) noexcept { return base_name(path).starts_with("libcuda.so"); }

bool is_libcuda(const LoadedObject& object) noexcept {
  return names_libcuda(object.path) || names_libcuda(object.soname);
}

bool is_driver_file(const LoadedObject& object) noexcept {
  const std::string_view name = base_name(object.path);
  return is_libcuda(object) || name.starts_with("libnvidia-") || name.starts_with("libcudadebugger.so") ||
         name.starts_with("libnvcuvid.so");
}

namespace {

/// What follows the name of a library: `.so`, an architecture's number (TensorRT's parts), `.alt` (CUDA 13's
/// NVRTC), or the hash that auditwheel adds (libcublas-1a2b3c4d.so.11).
bool is_end_of_name(std::string_view rest) noexcept {
  const auto skip = [&rest](std::string_view digits) {
    const std::size_t end = rest.find_first_not_of(digits);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
  };
  skip("0123456789");
  if (rest.starts_with(".alt")) rest.remove_prefix(4);
  if (rest.starts_with('-')) {
    rest.remove_prefix(1);
    skip("0123456789abcdef");
  }
  return rest.starts_with(".so") && (rest.size() == 3 || rest[3] == '.');
}

}  // namespace

bool is_nvidia_library(std::string_view path) noexcept {
  const std::string_view name = base_name(path);
  const auto is = [name](std::string_view library) {
    return name.starts_with(library) && is_end_of_name(part_of(name, library.size()));
  };
#define KSHIM_NVIDIA_LIBRARY(library) \
  if (is(library)) return true;
#include "cuda/nvidia_libraries.def"
#undef KSHIM_NVIDIA_LIBRARY
  return false;
}

bool is_shared_runtime(std::string_view path) noexcept {
  const std::string_view name = base_name(path);
  return (name.starts_with("libcudart.") || name.starts_with("libcudart-")) &&
         name.find(".so") != std::string_view::npos;
}

}  // namespace kshim::shim
