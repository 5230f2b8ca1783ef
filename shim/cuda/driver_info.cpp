// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver_info.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "cuda/cuda_abi.h"
#include "cuda/real_functions.h"
#include "guest/own_file.h"
#include "guest/reentry_guard.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "process/scattered_read.h"
#include "report/environment.h"
#include "report/report_file.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kMinor = 76;

template <class Fn>
Fn ask(const char* name, PageCache* pages = nullptr) noexcept {
  return reinterpret_cast<Fn>(driver_function(name, pages));
}

using ContextDevice = abi::Result (*)(abi::CUdevice*);

/// The mapping of the driver that was initialized last, and its cuCtxGetDevice. Before cuInit, the shim does
/// not call the driver for the current device.
std::atomic<std::uint64_t> g_initialized{0};
std::atomic<ContextDevice> g_context_device{nullptr};

void read_kernel_module(Text<64>& out) noexcept {
  const OwnFile file(raw::open_file("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC));
  char text[64];
  const std::string_view version(text, file.read(0, text, sizeof text));
  out << version.substr(0, version.find('\n'));
}

using Uuid = std::array<unsigned char, 16>;

/// As nvidia-smi writes it: GPU-8-4-4-4-12, of an instance (MIG) MIG-8-4-4-4-12.
void write_uuid(const Uuid& bytes, bool of_instance, Text<40>& out) noexcept {
  const Text<40> hex = to_hex(std::as_bytes(std::span(bytes)));
  const std::string_view digits = hex.view();
  out << (of_instance ? "MIG-" : "GPU-") << digits.substr(0, 8) << "-" << digits.substr(8, 4) << "-"
      << digits.substr(12, 4) << "-" << digits.substr(16, 4) << "-" << digits.substr(20);
}

void learn_device(int ordinal, PageCache& pages, DeviceInfo& out) noexcept {
  const auto get = ask<abi::Result (*)(abi::CUdevice*, int)>("cuDeviceGet", &pages);
  const auto name = ask<abi::Result (*)(char*, int, abi::CUdevice)>("cuDeviceGetName", &pages);
  const auto attribute = ask<abi::Result (*)(int*, int, abi::CUdevice)>("cuDeviceGetAttribute", &pages);
  using GetUuid = abi::Result (*)(unsigned char*, abi::CUdevice);
  auto uuid = ask<GetUuid>("cuDeviceGetUuid_v2", &pages);
  if (uuid == nullptr) uuid = ask<GetUuid>("cuDeviceGetUuid", &pages);
  const auto pci = ask<abi::Result (*)(char*, int, abi::CUdevice)>("cuDeviceGetPCIBusId", &pages);
  abi::CUdevice device = 0;
  if (get == nullptr || get(&device, ordinal) != 0) return;
  char text[256] = {};
  if (name != nullptr && name(text, sizeof text - 1, device) == 0) out.name << std::string_view(text);
  int major = 0;
  int minor = 0;
  if (attribute != nullptr && attribute(&major, kMajor, device) == 0 &&
      attribute(&minor, kMinor, device) == 0)
    out.cc = {static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
  // cuDeviceGetUuid_v2 (drivers of CUDA 11.4 and later) gives the UUID of the instance where the GPU is
  // split, and the driver puts the instance's profile into the name.
  Uuid bytes{};
  if (uuid != nullptr && uuid(bytes.data(), device) == 0)
    write_uuid(bytes, out.name.view().find(" MIG ") != std::string_view::npos, out.uuid);
  char bus[32] = {};
  if (pci != nullptr && pci(bus, sizeof bus - 1, device) == 0) out.pci << std::string_view(bus);
}

bool write_driver(Report& report, const DriverAnswers& facts) noexcept {
  const image::ShortName version = to_name(facts.version);
  return report.write<RecordType::driver>([&](auto& record) {
    record.template add<Field::driver_path>(facts.path.empty() ? std::string_view() : facts.path.view());
    record.template add<Field::driver_cuda_version>(facts.version.known() ? version.view()
                                                                          : std::string_view());
    record.template add<Field::driver_kernel_module>(
        facts.kernel_module.empty() ? std::string_view() : facts.kernel_module.view());
    record.template add<Field::driver_simulated>(facts.simulated);
  });
}

void write_devices(Report& report, const DriverAnswers& facts) noexcept {
  for (std::size_t i = 0; i < facts.count; ++i) {
    const DeviceInfo& device = facts.devices[i];
    const image::ShortName cc = to_name(device.cc);
    report.write<RecordType::device>([&](auto& record) {
      record.template add<Field::device_ordinal>(std::uint64_t{i});
      record.template add<Field::device_name>(device.name.empty() ? std::string_view() : device.name.view());
      record.template add<Field::device_compute_capability>(cc.view());
      record.template add<Field::device_uuid>(device.uuid.empty() ? std::string_view() : device.uuid.view());
      record.template add<Field::device_pci>(device.pci.empty() ? std::string_view() : device.pci.view());
    });
  }
}

}  // namespace

void ask_driver(bool initialized, DriverAnswers& facts) noexcept {
  const ScopedQuestion question;
  if (!question) return;
  PageCache pages;
  facts.initialized = initialized;
  facts.path << driver_path();
  facts.driver = current_driver();
  facts.context_device = ask<ContextDevice>("cuCtxGetDevice", &pages);
  int number = 0;
  const auto version = ask<abi::Result (*)(int*)>("cuDriverGetVersion", &pages);
  if (version != nullptr && version(&number) == 0) facts.version = image::Version::from_cuda_number(number);
  Switch jit[] = {{"CUDA_FORCE_PTX_JIT"}, {"CUDA_DISABLE_PTX_JIT"}, {"CUDA_FORCE_JIT"}, {"CUDA_DISABLE_JIT"}};
  find_switches(jit);
  facts.force_ptx_jit = jit[0].on;
  facts.disable_ptx_jit = jit[1].on;
  facts.force_jit = jit[2].on;
  facts.disable_jit = jit[3].on;
  const auto count = ask<abi::Result (*)(int*)>("cuDeviceGetCount", &pages);
  int devices = 0;
  if (initialized && count != nullptr && count(&devices) == 0 && devices > 0)
    facts.count = std::min<std::size_t>(static_cast<std::size_t>(devices), DriverAnswers::kMaxDevices);
  for (std::size_t i = 0; i < facts.count; ++i) {
    learn_device(static_cast<int>(i), pages, facts.devices[i]);
    facts.simulated = facts.simulated || facts.devices[i].name.view().ends_with(" (simulated)");
  }
  if (!facts.simulated) read_kernel_module(facts.kernel_module);
}

std::optional<std::uint64_t> ask_current_device() noexcept {
  const std::uint64_t driver = g_initialized.load(std::memory_order_acquire);
  const ScopedQuestion question;
  if (driver == 0 || driver != current_driver() || !question) return {};
  const ContextDevice current = g_context_device.load(std::memory_order_relaxed);
  abi::CUdevice device = -1;
  if (current == nullptr || current(&device) != 0 || device < 0) return {};
  return static_cast<std::uint64_t>(device);
}

bool DriverInfo::knows(bool initialized) const noexcept {
  return known_ && facts_.driver == current_driver() && (facts_.initialized || !initialized);
}

void DriverInfo::learn(const DriverAnswers& facts) noexcept {
  facts_ = facts;
  known_ = true;
  if (!facts.initialized) return;
  g_initialized.store(0, std::memory_order_relaxed);  // while the other one changes
  g_context_device.store(facts.context_device, std::memory_order_relaxed);
  g_initialized.store(facts.driver, std::memory_order_release);
}

void DriverInfo::announce(Report& report) noexcept {
  const std::uint32_t number = known_ && facts_.driver != 0 ? report.begin() : 0;
  if (number == 0) return;
  if (driver_report_ != number && write_driver(report, facts_)) {
    driver_report_ = number;
    report.zero_if_lost(driver_report_);
  }
  if (facts_.initialized && devices_report_ != number) {
    write_devices(report, facts_);
    devices_report_ = number;
    report.zero_if_lost(devices_report_);
  }
}

const DeviceInfo* DriverInfo::device(std::optional<std::uint64_t> ordinal) const noexcept {
  return ordinal && *ordinal < facts_.count ? &facts_.devices[*ordinal] : nullptr;
}

std::optional<std::uint64_t> DriverInfo::device_or_only(std::optional<std::uint64_t> asked) const noexcept {
  if (asked) return asked;
  if (facts_.count == 1) return 0;
  return {};
}

image::Platform DriverInfo::platform_of(image::ComputeCapability device) const noexcept {
  image::Platform platform;
  platform.device = device;
  if (known_) {
    platform.driver = facts_.version;
    platform.jit = {facts_.force_ptx_jit, facts_.disable_ptx_jit, facts_.force_jit, facts_.disable_jit, true};
  }
  return platform;
}

}  // namespace kshim::shim
