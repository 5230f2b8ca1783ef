// SPDX-License-Identifier: Apache-2.0
// The driver and its devices: asked once, after the first cuInit that succeeds, and written into each report
// of the process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cuda/cuda_abi.h"
#include "guest/text_buffer.h"
#include "kshim/image/select.h"
#include "report/report_file.h"

namespace kshim::shim {

struct DeviceInfo {
  Text<256> name;
  image::ComputeCapability cc;
  Text<40> uuid;
  Text<32> pci;
};

/// The driver's answers.
struct DriverAnswers {
  static constexpr std::size_t kMaxDevices = 64;
  bool initialized = false;  ///< devices were asked for, too
  std::uint64_t driver = 0;  ///< number of the mapping of the driver that was asked (current_driver)
  abi::Result (*context_device)(abi::CUdevice*) = nullptr;  ///< its cuCtxGetDevice
  PathText path;
  image::Version version;
  Text<64> kernel_module;
  bool simulated = false;
  bool force_ptx_jit = false, disable_ptx_jit = false, force_jit = false,
       disable_jit = false;  // the compiler's presence is not known here
  std::size_t count = 0;
  DeviceInfo devices[kMaxDevices];
};

/// Calls the driver (ScopedQuestion: another thread may be in the driver and wait for the shim's lock).
void ask_driver(bool initialized, DriverAnswers& out) noexcept;
/// The ordinal of the calling thread's current device; none if the driver reports an error. Calls the driver,
/// as above.
std::optional<std::uint64_t> ask_current_device() noexcept;

/// Lies in zeroed memory.
class DriverInfo {
 public:
  /// Whether the answers are of the driver that is loaded now, with devices if `initialized`.
  bool knows(bool initialized) const noexcept;
  void learn(const DriverAnswers& facts) noexcept;
  /// Writes the driver and device records into the present report, once each.
  void announce(Report& report) noexcept;

  /// nullptr for an ordinal that is not known.
  const DeviceInfo* device(std::optional<std::uint64_t> ordinal) const noexcept;
  /// `asked`, else the only device of the machine, else none.
  std::optional<std::uint64_t> device_or_only(std::optional<std::uint64_t> asked) const noexcept;
  /// What select_image needs to know about a device.
  image::Platform platform_of(image::ComputeCapability device) const noexcept;

 private:
  bool known_;
  DriverAnswers facts_;
  std::uint32_t driver_report_;   ///< the report that has the driver's record
  std::uint32_t devices_report_;  ///< the same of the devices'
};

}  // namespace kshim::shim
