// SPDX-License-Identifier: Apache-2.0
// Which CUDA library a file is, by its name.
#pragma once
#include <string_view>

namespace kshim::shim {

/// libcuda.so.1 and the other files of NVIDIA's driver: their own look-ups are left alone.
bool is_driver_file(std::string_view path) noexcept;
/// A library NVIDIA ships (cuBLAS, cuDNN, NCCL ...): its failing loads are its own probing.
/// nvidia_libraries.def.
bool is_nvidia_library(std::string_view path) noexcept;
/// libcudart.so.*, or one that a wheel has renamed (libcudart-e409450e.so.11.0): it calls the driver on
/// behalf of its caller.
bool is_shared_runtime(std::string_view path) noexcept;

}  // namespace kshim::shim
