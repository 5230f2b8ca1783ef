// SPDX-License-Identifier: Apache-2.0
// Gathers what is known about a failed call, from its arguments and from earlier calls. Writes no record.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "cuda/call_args.h"
#include "failure/failure_notice.h"
#include "kshim/report/writer.h"
#include "track/compiler_errors.h"
#include "track/fatbin_registry.h"
#include "track/handle_names.h"
#include "track/modules.h"

namespace kshim::shim {

/// A failed call of the driver, and what was known when it returned.
struct DriverFailure {
  CallArgs facts;
  std::uint64_t module = 0;  ///< number of the load; 0 = none
  std::optional<std::uint64_t> device;
};

struct FailureInfo {
  Hook hook{};  ///< the outermost call
  Stage stage{};
  abi::Result code = 0;
  bool runtime = false;  ///< the outermost call is the runtime's
  report::LayerRow layers[2];
  std::size_t layer_count = 0;
  std::optional<std::uint64_t> device;
  std::string_view kernel;
  Module module;                ///< code.address, .object or .hash are set where the device code is known
  bool module_written = false;  ///< the present report has its record
  std::uint32_t object = 0;     ///< identity of what holds the device code, or of the host stub's file
  std::uint32_t owner = 0;      ///< identity of the file that the code belongs to, else of the caller's file
  std::string_view driver_log;  ///< empty where it was not asked for
  const Refusal* refusal = nullptr;  ///< a compiler library's; then there is no kernel and no module
};

/// What the facts are gathered from. Texts of `out` lie in `handles`.
struct FailureSources {
  const Modules& modules;
  const DriverInfo& driver;
  HandleNames& handles;
  std::uint32_t report;
};
void gather(const DriverFailure* driver, const CallArgs* runtime, const FailureSources& sources,
            FailureInfo& out) noexcept;
void gather(const Refusal& refusal, std::optional<std::uint64_t> device, FailureInfo& out) noexcept;
/// Failures with the same key are one failure and its repetitions.
std::uint64_t key_of(const FailureInfo& facts) noexcept;
/// Whether to print the notice: for a failed launch, and for a failed look-up or load that is not a library's
/// probe.
bool deserves_notice(const FailureInfo& facts) noexcept;
/// Does not set the Python frame. `have` and `arch` hold texts that `out` refers to.
void fill_notice(const FailureInfo& facts, const DriverInfo& driver, Notice& out, ArchList& have,
                 image::ShortName& arch) noexcept;

}  // namespace kshim::shim
