// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver_info.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/cuda_abi.h"
#include "cuda/next_symbol.h"
#include "guest/errno_keeper.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "process/loaded_objects.h"
#include "report/report_file.h"

extern char** environ;

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kMinor = 76;

using ContextDevice = abi::Result (*)(abi::CUdevice*);

struct Facts {
  PathText path;
  image::Version version;
  Text<64> kernel_module;
  bool simulated = false;
  bool force_ptx_jit = false, disable_ptx_jit = false, force_jit = false,
       disable_jit = false;  // the compiler's presence is not known here
  std::size_t count = 0;
  DeviceFacts devices[kMaxDevices];
};
PatientLock g_lock;
PatientLock g_announcing;                   // of writing what is known; taken before report_file.cpp's
constinit Facts g_facts[2];                 // by what was learned: of the driver alone; of the devices, too
std::atomic<std::uint32_t> g_learned{0};    // how many of them are complete; they never change then
std::atomic<std::uint64_t> g_announced{0};  // number of the report * 4 + what was learned by then

/// What is known; nullptr before something is.
const Facts* known_facts() noexcept {
  const std::uint32_t learned = g_learned.load(std::memory_order_acquire);
  return learned == 0 ? nullptr : &g_facts[learned - 1];
}

template <class Fn>
Fn ask(const char* name) noexcept {
  return reinterpret_cast<Fn>(driver_function(name));
}

bool is_set(const char* name) noexcept {
  const std::size_t length = strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      return strcmp(*entry + length + 1, "1") == 0;
  return false;
}

void read_kernel_module(Text<64>& out) noexcept {
  const int file = raw::open_file("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[64];
  const ssize_t got = raw::read_file(file, text, sizeof text);
  raw::close_file(file);
  std::string_view version(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  out << version.substr(0, version.find('\n'));
}

/// As nvidia-smi writes it: GPU-8-4-4-4-12.
void write_uuid(const unsigned char (&bytes)[16], Text<40>& out) noexcept {
  const Text<40> hex = to_hex(std::as_bytes(std::span(bytes)));
  const std::string_view digits = hex.view();
  out << "GPU-" << digits.substr(0, 8) << "-" << digits.substr(8, 4) << "-" << digits.substr(12, 4) << "-"
      << digits.substr(16, 4) << "-" << digits.substr(20);
}

void learn_device(int ordinal, DeviceFacts& out) noexcept {
  const auto get = ask<abi::Result (*)(abi::CUdevice*, int)>("cuDeviceGet");
  const auto name = ask<abi::Result (*)(char*, int, abi::CUdevice)>("cuDeviceGetName");
  const auto attribute = ask<abi::Result (*)(int*, int, abi::CUdevice)>("cuDeviceGetAttribute");
  auto uuid = ask<abi::Result (*)(unsigned char*, abi::CUdevice)>("cuDeviceGetUuid_v2");
  if (uuid == nullptr) uuid = ask<abi::Result (*)(unsigned char*, abi::CUdevice)>("cuDeviceGetUuid");
  const auto pci = ask<abi::Result (*)(char*, int, abi::CUdevice)>("cuDeviceGetPCIBusId");
  abi::CUdevice device = 0;
  if (get == nullptr || get(&device, ordinal) != 0) return;
  char text[256] = {};
  if (name != nullptr && name(text, sizeof text - 1, device) == 0) out.name << std::string_view(text);
  int major = 0;
  int minor = 0;
  if (attribute != nullptr && attribute(&major, kMajor, device) == 0 &&
      attribute(&minor, kMinor, device) == 0)
    out.cc = {static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
  unsigned char bytes[16] = {};
  if (uuid != nullptr && uuid(bytes, device) == 0) write_uuid(bytes, out.uuid);
  char bus[32] = {};
  if (pci != nullptr && pci(bus, sizeof bus - 1, device) == 0) out.pci << std::string_view(bus);
}

void learn(Facts& facts, bool initialised) noexcept {
  facts.path.shrink(0);  // asked again once it is initialised
  facts.path << driver_path();
  int number = 0;
  const auto version = ask<abi::Result (*)(int*)>("cuDriverGetVersion");
  if (version != nullptr && version(&number) == 0) facts.version = image::Version::from_cuda_number(number);
  facts.force_ptx_jit = is_set("CUDA_FORCE_PTX_JIT");
  facts.disable_ptx_jit = is_set("CUDA_DISABLE_PTX_JIT");
  facts.force_jit = is_set("CUDA_FORCE_JIT");
  facts.disable_jit = is_set("CUDA_DISABLE_JIT");
  const auto count = ask<abi::Result (*)(int*)>("cuDeviceGetCount");
  int devices = 0;
  if (initialised && count != nullptr && count(&devices) == 0 && devices > 0)
    facts.count = std::min<std::size_t>(static_cast<std::size_t>(devices), kMaxDevices);
  for (std::size_t i = 0; i < facts.count; ++i) {
    learn_device(static_cast<int>(i), facts.devices[i]);
    facts.simulated = facts.simulated || facts.devices[i].name.view().ends_with(" (simulated)");
  }
  facts.kernel_module.shrink(0);
  if (!facts.simulated) read_kernel_module(facts.kernel_module);
}

void write_driver(const Facts& facts) noexcept {
  const image::ShortName version = to_name(facts.version);
  write_record<RecordType::driver>([&](auto& record) {
    record.template add<Field::driver_path>(facts.path.empty() ? std::string_view() : facts.path.view());
    record.template add<Field::driver_cuda_version>(facts.version.known() ? version.view()
                                                                          : std::string_view());
    record.template add<Field::driver_kernel_module>(
        facts.kernel_module.empty() ? std::string_view() : facts.kernel_module.view());
    record.template add<Field::driver_simulated>(facts.simulated);
  });
}

void write_devices(const Facts& facts) noexcept {
  for (std::size_t i = 0; i < facts.count; ++i) {
    const DeviceFacts& device = facts.devices[i];
    const image::ShortName cc = to_name(device.cc);
    write_record<RecordType::device>([&](auto& record) {
      record.template add<Field::device_ordinal>(std::uint64_t{i});
      record.template add<Field::device_name>(device.name.empty() ? std::string_view() : device.name.view());
      record.template add<Field::device_compute_capability>(cc.view());
      record.template add<Field::device_uuid>(device.uuid.empty() ? std::string_view() : device.uuid.view());
      record.template add<Field::device_pci>(device.pci.empty() ? std::string_view() : device.pci.view());
    });
  }
}

}  // namespace

void learn_driver(bool initialised) noexcept {
  const std::uint32_t wanted = initialised ? 2 : 1;
  if (g_learned.load(std::memory_order_acquire) >= wanted) return;
  const ErrnoKeeper keeper;
  // The driver takes none of the shim's locks.
  const LockGuard guard(g_lock);
  if (!guard || g_learned.load(std::memory_order_acquire) >= wanted) return;
  learn(g_facts[wanted - 1], initialised);
  g_learned.store(wanted, std::memory_order_release);
}

void announce_driver() noexcept {
  const std::uint32_t learned = g_learned.load(std::memory_order_acquire);
  if (learned == 0) return;
  const std::uint64_t number = begin_report();
  if (number == 0) return;
  const std::uint64_t now = number * 4 + learned;
  if (g_announced.load(std::memory_order_acquire) == now) return;
  // Nobody may refer to a device before it is written: a second thread waits here for the first.
  const LockGuard guard(g_announcing);
  const std::uint64_t before = g_announced.load(std::memory_order_acquire);
  if (!guard || before >= now) return;  // reports and what is known only grow
  const Facts& facts = g_facts[learned - 1];
  if (before / 4 != number) write_driver(facts);
  if (learned == 2) write_devices(facts);
  g_announced.store(now, std::memory_order_release);
}

std::size_t device_count() noexcept {
  const Facts* facts = known_facts();
  return facts == nullptr ? 0 : facts->count;
}

const DeviceFacts* device_facts(std::optional<std::uint64_t> ordinal) noexcept {
  const Facts* facts = known_facts();
  return facts != nullptr && ordinal && *ordinal < facts->count ? &facts->devices[*ordinal] : nullptr;
}

namespace {

/// The driver's cuCtxGetDevice. The driver may be unloaded, and loaded again at another address.
ContextDevice context_device() noexcept {
  static std::atomic<std::uint64_t> g_driver{0};
  static std::atomic<ContextDevice> g_function{nullptr};
  if (g_learned.load(std::memory_order_acquire) != 2) return nullptr;
  const std::uint64_t driver = current_driver();
  if (driver == 0) return nullptr;
  // Written in this order, read in the other one.
  const ContextDevice known = g_function.load(std::memory_order_acquire);
  if (g_driver.load(std::memory_order_acquire) == driver &&
      known == g_function.load(std::memory_order_acquire))
    return known;
  const auto fresh = ask<ContextDevice>("cuCtxGetDevice");
  g_driver.store(0, std::memory_order_release);
  g_function.store(fresh, std::memory_order_release);
  g_driver.store(driver, std::memory_order_release);
  return fresh;
}

}  // namespace

std::optional<std::uint64_t> current_device() noexcept {
  const ContextDevice ask_context = context_device();
  abi::CUdevice device = -1;
  if (ask_context != nullptr && ask_context(&device) == 0 && device >= 0)
    return static_cast<std::uint64_t>(device);
  if (device_count() == 1) return 0;
  return {};
}

image::Platform platform_of(image::ComputeCapability device) noexcept {
  image::Platform platform;
  platform.device = device;
  if (const Facts* facts = known_facts(); facts != nullptr) {
    platform.driver = facts->version;
    platform.jit = {facts->force_ptx_jit, facts->disable_ptx_jit, facts->force_jit, facts->disable_jit, true};
  }
  return platform;
}

}  // namespace kshim::shim
