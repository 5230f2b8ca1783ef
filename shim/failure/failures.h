// SPDX-License-Identifier: Apache-2.0
// Failed calls: tells repetitions from new failures, writes their records, and prints the notice.
#pragma once
#include <cstddef>
#include <cstdint>

#include "failure/failure_info.h"
#include "failure/gaps.h"
#include "failure/jit_log.h"
#include "failure/known_stacks.h"
#include "process/python/frames.h"
#include "process/stack/native.h"

namespace kshim::shim {

/// Lies in zeroed memory.
class Failures {
 public:
  /// The other members of State that a failure needs.
  struct Scene {
    Report& report;
    const DriverInfo& driver;
    ObjectRecords& objects;
    const Modules& modules;
    HandleNames& handles;
    Gaps& gaps;
  };
  /// Adds a failure that was seen at the driver, at the runtime or at both; at least one is not null.
  void add(const Scene& scene, const DriverFailure* driver, const CallArgs* runtime,
           std::optional<std::uint64_t> device, std::string_view driver_log) noexcept;
  /// A compiler library refused an architecture.
  void add(const Scene& scene, const Refusal& refusal, std::optional<std::uint64_t> device) noexcept;
  /// Lines of the driver's error log, which are all that is known of a call.
  void add(const Scene& scene, std::string_view driver_log) noexcept;
  /// Writes the repetitions that the report does not have yet.
  void flush_repeats(Report& report) noexcept;

 private:
  struct Known {
    std::uint64_t key;
    std::uint64_t count;         ///< how often it happened
    std::uint64_t written;       ///< how often the report says; 0 = it does not have the failure
    std::uint64_t last_written;  ///< time of the last repeat, with KSHIM_REPEATS=each
  };
  static constexpr std::size_t kMax = KnownStacks::kMax;

  void record(const Scene& scene, const FailureInfo& facts) noexcept;
  void begin_again(std::uint32_t report) noexcept;
  std::size_t find_or_add(std::uint64_t key) noexcept;
  void write_repeat(Report& report, std::size_t index) noexcept;
  void capture_stacks(bool name_kernel) noexcept;
  bool write(Report& report, const FailureInfo& facts, std::uint64_t id) noexcept;
  void notify(const Scene& scene, const FailureInfo& facts) noexcept;

  std::uint32_t report_;  ///< the report that known_ belongs to
  std::size_t count_;
  Known known_[kMax];
  static constexpr std::size_t kSlots = 4 * kMax;
  std::uint16_t slots_[kSlots];  ///< by key, open addressing: index in known_ + 1
  NativeStack native_;
  PythonStack python_;
  PythonStack python_main_;
  KnownStacks known_native_;
  KnownStacks known_python_;
  KnownStacks known_python_main_;
  JitLog jit_log_;  ///< of the failure that is written now
};

}  // namespace kshim::shim
