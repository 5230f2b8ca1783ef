// SPDX-License-Identifier: Apache-2.0
// The environment, read once. A bad value is named on stderr with the default that is used instead.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kshim/image/arch.h"
#include "kshim/image/select.h"

namespace kshim::sim {

struct RequestedDevice {
  image::ComputeCapability cc;
  std::string name;  ///< empty: the default product of this compute capability
};

/// The call that fails for a library without an image for the device. No document states it: see
/// docs/internals/simulator.md, "no image".
enum class LibraryRule : std::uint8_t {
  load,        ///< cuLibraryLoadData
  get_kernel,  ///< cuLibraryGetKernel, GetModule, GetGlobal
  first_use,   ///< launch, cuKernelGetFunction, attributes, GetGlobal, GetModule
};

/// A kernel whose launch causes a fault. Kernels are not executed, so this is the only way to test what
/// follows a fault.
struct FaultRule {
  std::string kernel;  ///< part of its mangled name; empty: no rule
  int code = 700;      ///< CUresult
};

struct Settings {
  std::vector<RequestedDevice> devices;  ///< KSHIM_SIM_DEVICES
  image::Version driver{13, 0};          ///< KSHIM_SIM_DRIVER; newer by default for a device that is newer
  std::uint64_t memory = 0;              ///< KSHIM_SIM_MEMORY, bytes a device; 0: the product's own
  LibraryRule library_rule = LibraryRule::get_kernel;  ///< KSHIM_SIM_NO_IMAGE
  image::JitSwitches jit;                              ///< CUDA_FORCE_PTX_JIT and relatives, KSHIM_SIM_JIT
  FaultRule fault;                                     ///< KSHIM_SIM_FAULT
  bool blocking = false;                               ///< CUDA_LAUNCH_BLOCKING
  bool eager = false;                                  ///< CUDA_MODULE_LOADING
  std::optional<std::string> visible;                  ///< CUDA_VISIBLE_DEVICES
};

const Settings& settings() noexcept;

}  // namespace kshim::sim
