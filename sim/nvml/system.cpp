// SPDX-License-Identifier: Apache-2.0
// Start and end, versions, texts of errors.
#include <atomic>
#include <cstring>
#include <string>

#include "base/settings.h"
#include "nvml/library.h"

namespace kshim::sim::nvml {
namespace {

std::atomic<unsigned> g_starts{0};

struct DriverVersion {
  image::Version cuda;
  const char* text;
};
constexpr DriverVersion kDriverVersions[] = {
#define KSHIM_DRIVER_VERSION(major, minor, text) {{major, minor}, text},
#include "kshim/knowledge/toolkits.def"
};

/// Of the newest row that is not newer than KSHIM_SIM_DRIVER, which is 8.0 or more.
std::string_view driver_version() noexcept {
  const char* found = kDriverVersions[0].text;
  for (const DriverVersion& row : kDriverVersions) {
    if (!(settings().driver < row.cuda)) found = row.text;
  }
  return found;
}

}  // namespace

Result check_initialized() noexcept {
  return g_starts.load(std::memory_order_acquire) != 0 ? Result::success : Result::uninitialized;
}

Result put_text(std::string_view text, char* out, unsigned length) noexcept {
  if (length <= text.size()) return Result::insufficient_size;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return Result::success;
}

Result nvmlInit_v2() noexcept {
  g_starts.fetch_add(1, std::memory_order_acq_rel);
  return Result::success;
}
Result nvmlInit() noexcept { return nvmlInit_v2(); }
// Both flags that there are ask for less: no failure without a GPU, which never is one here, no attaching.
Result nvmlInitWithFlags(unsigned) noexcept { return nvmlInit_v2(); }

Result nvmlShutdown() noexcept {
  unsigned starts = g_starts.load(std::memory_order_acquire);
  do {
    if (starts == 0) return Result::uninitialized;
  } while (!g_starts.compare_exchange_weak(starts, starts - 1, std::memory_order_acq_rel));
  return Result::success;
}

Result nvmlSystemGetDriverVersion(char* version, unsigned length) noexcept {
  if (const Result result = check_initialized(); result != Result::success) return result;
  if (version == nullptr) return Result::invalid_argument;
  return put_text(driver_version(), version, length);
}

Result nvmlSystemGetNVMLVersion(char* version, unsigned length) noexcept {
  if (version == nullptr) return Result::invalid_argument;
  std::string text = std::to_string(settings().driver.major);
  text.append(".").append(driver_version());
  return put_text(text, version, length);
}

Result nvmlSystemGetCudaDriverVersion_v2(int* version) noexcept {
  if (version == nullptr) return Result::invalid_argument;
  *version = settings().driver.cuda_number();
  return Result::success;
}
Result nvmlSystemGetCudaDriverVersion(int* version) noexcept {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

const char* nvmlErrorString(Result result) noexcept {
  switch (result) {
    case Result::success:
      return "Success";
    case Result::uninitialized:
      return "Uninitialized";
    case Result::invalid_argument:
      return "Invalid Argument";
    case Result::not_supported:
      return "Not Supported";
    case Result::not_found:
      return "Not Found";
    case Result::insufficient_size:
      return "Insufficient Size";
    case Result::argument_version_mismatch:
      return "Argument Version Mismatch";
  }
  return "Unknown Error";  // never returned by this library
}

}  // namespace kshim::sim::nvml
