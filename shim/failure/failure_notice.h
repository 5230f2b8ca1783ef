// SPDX-License-Identifier: Apache-2.0
// The block on stderr at the first failure of a kind: one screen, most important line first, ending with the
// command that explains it. Whether a failure deserves one (not a library's own probing) is decided by the
// caller.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kshim::shim {

/// What is known; empty or unset where it is not.
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

/// Writes the block unless one for the same error code was written before, or KSHIM_LOG=off. `report`: as
/// below.
void print_notice(const Notice& alarm, std::string_view report) noexcept;

/// The block itself, at most 4 KiB; `report` is the report's path, empty when there is none. For print_notice
/// and the tests.
std::size_t format_notice(const Notice& alarm, std::string_view report, std::span<char> out) noexcept;

}  // namespace kshim::shim
