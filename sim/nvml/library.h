// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 of the simulator: NVML for the devices of KSHIM_SIM_DEVICES, for NCCL, PyTorch and tools
// that do not start without it. It shares the list of devices with libcuda.so.1 and
// nothing else: no state is common to both libraries or to two processes.
#pragma once
#include <string_view>

#include "device/product.h"
#include "nvml/types.h"

extern "C" {
namespace kshim::sim::nvml {
#define KSHIM_NVML(name, ...) [[gnu::visibility("default")]] Result name(__VA_ARGS__) noexcept;
#include "nvml/functions.def"
#undef KSHIM_NVML
/// The only function without a result code.
[[gnu::visibility("default")]] const char* nvmlErrorString(Result result) noexcept;
}  // namespace kshim::sim::nvml
}

namespace kshim::sim::nvml {

/// 1 unless nvmlInit was called more often than nvmlShutdown.
Result check_initialized() noexcept;
/// The device behind a handle of nvmlDeviceGetHandleBy*; null for every other address.
const Device* device_of(const Handle* handle) noexcept;
/// 1, 2 for a handle or a pointer that is none, or success with the device.
Result require_device(const Handle* handle, const void* out, const Device*& device) noexcept;
/// Copies the text and its NUL, or returns 7: NVML does not truncate texts.
Result put_text(std::string_view text, char* out, unsigned length) noexcept;

}  // namespace kshim::sim::nvml
