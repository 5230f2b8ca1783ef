// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_libraries.h"

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

bool is_nvidia_library(std::string_view path) noexcept {
  const std::string_view name = base_name(path);
#define KSHIM_NVIDIA_LIBRARY(prefix) \
  if (name.starts_with(prefix)) return true;
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
