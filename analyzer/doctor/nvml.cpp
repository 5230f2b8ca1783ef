// SPDX-License-Identifier: Apache-2.0
#include "analyzer/doctor/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstring>

namespace kshim::doctor {
namespace {

// nvml.h of the CUDA toolkit; the functions and their arguments have been the same since 2011 (Init_v2 and
// Handle_v2 since 2013).
using Result = int;
using Device = void*;
constexpr unsigned kMostDevices = 256;
struct PciInfo {
  char legacy_bus[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

class Nvml {
 public:
  explicit Nvml(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  bool there() const noexcept { return handle_ != nullptr; }
  /// -1 where the library has no such function.
  template <class... Arguments>
  Result call(const char* name, Arguments... arguments) const {
    using Function = Result (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function == nullptr ? -1 : function(arguments...);
  }
  std::string error_text(Result result) const {
    using Function = const char* (*)(Result);
    const auto function = reinterpret_cast<Function>(dlsym(handle_, "nvmlErrorString"));
    const char* text = function == nullptr ? nullptr : function(result);
    return text == nullptr ? std::string() : std::string(text);
  }

 private:
  void* handle_;  // stays: what a driver has started in a process cannot be taken back
};

template <class... Arguments>
std::string text_of_call(const Nvml& library, const char* name, Arguments... arguments) {
  std::array<char, 128> text{};
  const Result result = library.call(name, arguments..., text.data(), static_cast<unsigned>(text.size() - 1));
  return result == 0 ? std::string(text.data()) : std::string();
}

Gpu look_at(const Nvml& library, Device device) {
  Gpu gpu;
  gpu.name = text_of_call(library, "nvmlDeviceGetName", device);
  gpu.uuid = text_of_call(library, "nvmlDeviceGetUUID", device);
  int major = 0;
  int minor = 0;
  if (library.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == 0)
    gpu.cc = image::ComputeCapability{static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
  PciInfo pci{};
  if (library.call("nvmlDeviceGetPciInfo_v3", device, &pci) == 0)
    gpu.pci = std::string(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id));
  unsigned current = 0;
  unsigned pending = 0;
  gpu.mig = library.call("nvmlDeviceGetMigMode", device, &current, &pending) == 0 && current == 1;
  gpu.simulated = gpu.name.ends_with(" (simulated)");
  return gpu;
}

}  // namespace

NvmlAnswers ask_nvml(const std::string& path) {
  NvmlAnswers out;
  const Nvml library(path);
  if (!library.there()) return out;
  if (const Result result = library.call("nvmlInit_v2"); result != 0) {
    out.error = library.error_text(result);
    return out;
  }
  out.answered = true;
  out.driver = text_of_call(library, "nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (library.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0)
    out.cuda = image::Version::from_cuda_number(cuda);
  unsigned count = 0;
  if (library.call("nvmlDeviceGetCount_v2", &count) != 0) count = 0;
  for (unsigned i = 0; i < count && i < kMostDevices; ++i) {
    Device device = nullptr;
    if (library.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0)
      out.gpus.push_back(look_at(library, device));
  }
  library.call("nvmlShutdown");
  return out;
}

}  // namespace kshim::doctor
