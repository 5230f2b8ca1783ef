// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/log.h"
#include "device/product.h"
#include "kshim/image/compute_capability.h"

namespace kshim::sim {
namespace {

void complain(std::string_view variable, std::string_view value, std::string_view problem) {
  std::string line(variable);
  line.append("=").append(value).append(": ").append(problem);
  log_line(LogLevel::error, line);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "8.6;sm_90:My GPU". One bad entry makes the whole list invalid: a part of it would be another machine.
std::vector<RequestedDevice> parse_devices(std::string_view text) {
  std::vector<RequestedDevice> devices;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find_first_of(";,");
    const std::string_view item = trimmed(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (item.empty()) continue;
    const std::size_t colon = item.find(':');
    const auto arch = image::parse_arch(trimmed(item.substr(0, colon)));
    if (!arch || find_limits(arch->cc) == nullptr) {
      std::string problem = "'";
      problem.append(item).append(
          "' is not a known compute capability (such as 8.6 or sm_90); no device is simulated");
      complain("KSHIM_SIM_DEVICES", text, problem);
      return {};
    }
    RequestedDevice device{arch->cc, {}};
    if (colon != std::string_view::npos) device.name = trimmed(item.substr(colon + 1));
    devices.push_back(std::move(device));
  }
  if (devices.size() > kMaxDevices) {
    complain("KSHIM_SIM_DEVICES", text, "more than 64 devices; the first 64 are simulated");
    devices.resize(kMaxDevices);
  }
  return devices;
}

std::uint64_t parse_bytes(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() || unit == "B" ? 0
                    : unit == "K"               ? 10
                    : unit == "M"               ? 20
                    : unit == "G"               ? 30
                                                : -1;
  if (error != std::errc() || shift < 0 || value == 0 || value > (UINT64_MAX >> shift)) {
    complain("KSHIM_SIM_MEMORY", text,
             "not a number of bytes (such as 8589934592 or 8G); the device's own size is used");
    return 0;
  }
  return value << shift;
}

LibraryRule parse_rule(std::string_view text) {
  if (text == "load") return LibraryRule::load;
  if (text == "get-kernel") return LibraryRule::get_kernel;
  if (text == "first-use") return LibraryRule::first_use;
  complain("KSHIM_SIM_NO_IMAGE", text, "not one of load, get-kernel, first-use; get-kernel is used");
  return LibraryRule::get_kernel;
}

/// "scale" or "scale:716".
FaultRule parse_fault(std::string_view text) {
  FaultRule rule;
  const std::size_t colon = text.rfind(':');
  rule.kernel = text.substr(0, colon);
  if (colon == std::string_view::npos) return rule;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rule.code);
  // What a kernel does to its context (cuda.h): illegal address, assert, hardware stack to launch failed.
  const bool known = rule.code == 700 || rule.code == 710 || (rule.code >= 714 && rule.code <= 719);
  if (error == std::errc() && end == digits.data() + digits.size() && known) return rule;
  complain("KSHIM_SIM_FAULT", text,
           "the code is not one that a kernel gives (700, 710, 714 to 719); 700 is used");
  rule.code = 700;
  return rule;
}

bool flag(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string_view(value) == "1";
}

bool read_eager(image::Version driver) {
  const char* value = std::getenv("CUDA_MODULE_LOADING");
  const std::string_view mode = value != nullptr ? value : "DEFAULT";
  if (mode == "EAGER") return true;
  if (mode == "LAZY") return false;
  // Lazy loading became the default on Linux with CUDA 12.2 (Programming Guide, "Lazy Loading").
  return driver < image::Version{12, 2};
}

struct DriverRow {
  image::Version cuda;
  std::string_view number;
};
constexpr DriverRow kDrivers[] = {
#define KSHIM_DRIVER_VERSION(major, minor, text) {{major, minor}, text},
#include "kshim/knowledge/toolkits.def"
};
struct LastDriverRow {
  image::ComputeCapability cc;
  int branch;  ///< 0: no end yet
};
constexpr LastDriverRow kLastDrivers[] = {
#define KSHIM_LAST_DRIVER(major, minor, branch) {{major, minor}, branch},
#include "kshim/knowledge/gpus.def"
};

/// 13.0, or what drives the devices asked for: not newer than the last driver of an old one (11.4 for a K80),
/// not older than the first of a new one.
image::Version default_driver(const std::vector<RequestedDevice>& devices) {
  image::Version driver{13, 0};
  for (const RequestedDevice& device : devices) {
    for (const LastDriverRow& row : kLastDrivers) {
      if (row.cc != device.cc || row.branch == 0) continue;
      image::Version last;
      for (const DriverRow& each : kDrivers) {
        int branch = 0;
        std::from_chars(each.number.data(), each.number.data() + each.number.size(), branch);
        if (branch <= row.branch) last = each.cuda;
      }
      if (last < driver) driver = last;
    }
  }
  for (const RequestedDevice& device : devices) {
    const auto* info = image::find_compute_capability(device.cc);
    if (info != nullptr && driver < info->first_toolkit) driver = info->first_toolkit;
  }
  return driver;
}

Settings read_settings() {
  Settings s;
  if (const char* value = std::getenv("KSHIM_SIM_DEVICES")) s.devices = parse_devices(value);
  s.driver = default_driver(s.devices);
  if (const char* value = std::getenv("KSHIM_SIM_DRIVER")) {
    const auto version = image::parse_version(value);
    if (version && version->major >= 8 && version->major < 100 && version->minor < 10) {
      s.driver = *version;
    } else {
      complain("KSHIM_SIM_DRIVER", value,
               "not a CUDA version from 8.0 on (such as 12.4); the default is used");
    }
  }
  if (const char* value = std::getenv("KSHIM_SIM_MEMORY")) s.memory = parse_bytes(value);
  if (const char* value = std::getenv("KSHIM_SIM_NO_IMAGE")) s.library_rule = parse_rule(value);
  if (const char* value = std::getenv("KSHIM_SIM_FAULT")) s.fault = parse_fault(value);
  s.blocking = flag("CUDA_LAUNCH_BLOCKING");
  s.jit.force_ptx_jit = flag("CUDA_FORCE_PTX_JIT");
  s.jit.disable_ptx_jit = flag("CUDA_DISABLE_PTX_JIT");
  s.jit.force_jit = flag("CUDA_FORCE_JIT");
  s.jit.disable_jit = flag("CUDA_DISABLE_JIT");
  if (const char* value = std::getenv("KSHIM_SIM_JIT")) {
    if (std::string_view(value) != "0" && std::string_view(value) != "1") {
      complain("KSHIM_SIM_JIT", value, "not 0 or 1; 1 is used");
    } else {
      s.jit.compiler_present = *value == '1';
    }
  }
  s.eager = read_eager(s.driver);
  if (const char* value = std::getenv("CUDA_VISIBLE_DEVICES")) s.visible = value;
  return s;
}

}  // namespace

const Settings& settings() noexcept {
  static const Settings& instance = *new Settings(read_settings());
  return instance;
}

}  // namespace kshim::sim
