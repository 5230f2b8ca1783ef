// SPDX-License-Identifier: Apache-2.0
// Which CUDA library a file is, by its name. Programs also open the driver under names of their own (a link,
// a copy, a file in memory): there its soname tells.
#pragma once
#include <string_view>

#include "process/loaded_objects.h"

namespace kshim::shim {

/// Whether a path or a soname is that of libcuda.so.1.
bool names_libcuda(std::string_view path) noexcept;
bool is_libcuda(const LoadedObject& object) noexcept;
/// libcuda.so.1 and the other files of NVIDIA's driver: their own look-ups are left alone.
bool is_driver_file(const LoadedObject& object) noexcept;
/// A library NVIDIA ships (cuBLAS, cuDNN, NCCL ...): its failing loads are its own probing.
/// nvidia_libraries.def.
bool is_nvidia_library(std::string_view path) noexcept;
/// libcudart.so.*, or one that a wheel has renamed (libcudart-e409450e.so.11.0): it calls the driver on
/// behalf of its caller.
bool is_shared_runtime(std::string_view path) noexcept;

}  // namespace kshim::shim
