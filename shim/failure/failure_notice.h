// SPDX-License-Identifier: Apache-2.0
// The notice on stderr at the first failure of a kind: one screen, the most important line first, the command
// that explains it last. The caller decides whether a failure gets one.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kshim::shim {

/// The contents of a notice; unknown members are empty or unset.
struct Notice {
  int code = 0;             ///< CUresult or cudaError_t
  bool runtime = false;     ///< the call belongs to the runtime API: its name of the error is shown
  std::string_view api;     ///< cuLaunchKernel
  std::string_view kernel;  ///< mangled
  std::string_view object;  ///< file that holds the device code
  std::optional<std::uint64_t> device;  ///< ordinal
  std::string_view device_name;
  std::string_view device_arch;            ///< sm_61
  std::span<const std::string_view> have;  ///< sm_75, compute_75 ...
  std::string_view need;                   ///< sm_61
  std::string_view compiler;  ///< NVRTC or nvJitLink, that refused `asked`; then `have` is what it knows
  std::string_view compiler_version;  ///< 13.0
  std::string_view asked;             ///< compute_61
  std::string_view code_name;         ///< of a compiler's `code`
  bool unwatched_table = false;       ///< loads of a runtime before 12 are not recorded
  std::string_view python_file;       ///< innermost Python frame
  std::uint64_t python_line = 0;
  std::string_view python_function;
};

/// Prints the notice unless one for the same error code was printed before, or KSHIM_LOG=off. `report`: as
/// below.
void print_notice(const Notice& notice, std::string_view report) noexcept;

/// Formats the notice, at most 4 KiB. `report`: the report's path, empty if there is none. For print_notice
/// and the tests.
std::size_t format_notice(const Notice& notice, std::string_view report, std::span<char> out) noexcept;

}  // namespace kshim::shim
