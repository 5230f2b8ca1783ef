// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "analyzer/device_code/own_process.h"
#include "analyzer/input/machine/facts.h"

namespace kshim::input {
using device_code::ProcessAnswer;

namespace {

using Json = nlohmann::json;

// nvml.h of the CUDA toolkit; the functions and their arguments have been the same since 2011 (Init_v2 and
// Handle_v2 since 2013).
using Result = int;
using Device = void*;
constexpr unsigned kMaxDevices = 256;
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

Json look_at(const Nvml& library, Device device) {
  const std::string name = text_of_call(library, "nvmlDeviceGetName", device);
  int major = 0;
  int minor = 0;
  if (library.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) != 0) major = 0;
  PciInfo pci{};
  const bool placed = library.call("nvmlDeviceGetPciInfo_v3", device, &pci) == 0;
  unsigned current = 0;
  unsigned pending = 0;
  const bool mig = library.call("nvmlDeviceGetMigMode", device, &current, &pending) == 0 && current == 1;
  return {{"name", name},
          {"uuid", text_of_call(library, "nvmlDeviceGetUUID", device)},
          {"major", major},
          {"minor", minor},
          {"pci", placed ? std::string(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id)) : ""},
          {"mig", mig}};
}

Json ask_here(const std::string& path) {
  const Nvml library(path);
  Json out = {{"answered", false}, {"error", ""}};
  if (!library.there()) return out;
  if (const Result result = library.call("nvmlInit_v2"); result != 0) {
    const std::string text = library.error_text(result);
    out["error"] = "answers: " + (text.empty() ? std::to_string(result) : text);
    return out;
  }
  out["answered"] = true;
  out["driver"] = text_of_call(library, "nvmlSystemGetDriverVersion");
  int cuda = 0;
  out["cuda"] = library.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0 ? cuda : 0;
  out["gpus"] = Json::array();
  unsigned count = 0;
  if (library.call("nvmlDeviceGetCount_v2", &count) != 0) count = 0;
  for (unsigned i = 0; i < count && i < kMaxDevices; ++i) {
    Device device = nullptr;
    if (library.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0)
      out["gpus"].push_back(look_at(library, device));
  }
  library.call("nvmlShutdown");
  return out;
}

NvmlAnswers parsed(const std::string& text) {
  const Json all = Json::parse(text);
  NvmlAnswers out;
  out.answered = all.at("answered").get<bool>();
  out.error = all.at("error").get<std::string>();
  if (!out.answered) return out;
  out.driver = all.at("driver").get<std::string>();
  out.cuda = image::Version::from_cuda_number(all.at("cuda").get<int>());
  for (const Json& row : all.at("gpus")) {
    Gpu& gpu = out.gpus.emplace_back();
    gpu.name = row.at("name").get<std::string>();
    gpu.uuid = row.at("uuid").get<std::string>();
    gpu.pci = row.at("pci").get<std::string>();
    gpu.mig = row.at("mig").get<bool>();
    gpu.simulated = gpu.name.ends_with(" (simulated)");
    const auto major = row.at("major").get<std::uint16_t>();
    if (major != 0) gpu.cc = image::ComputeCapability{major, row.at("minor").get<std::uint16_t>()};
  }
  return out;
}

}  // namespace

NvmlAnswers ask_nvml(const std::string& path, std::chrono::seconds patience) {
  const auto seconds = static_cast<std::uint64_t>(patience.count());
  const ProcessAnswer answer = device_code::ask_in_own_process(
      [&](int) { return ask_here(path).dump(-1, ' ', false, Json::error_handler_t::replace); },
      {.cpu_seconds = seconds, .patience = patience});
  NvmlAnswers out;
  switch (answer.end) {
    case ProcessAnswer::End::whole:
      return parsed(answer.text);
    case ProcessAnswer::End::crashed:
      out.error = answer.signal == 0 ? std::string("ended the process that asked it")
                                     : fmt::format("crashed when it was asked (signal {})", answer.signal);
      break;
    case ProcessAnswer::End::late:
      out.error = fmt::format("did not answer within {} s", seconds);
      break;
    case ProcessAnswer::End::not_asked:
      break;
  }
  return out;
}

}  // namespace kshim::input
