// SPDX-License-Identifier: Apache-2.0
// The loads of this process. Each gets a module record and is remembered for failures in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/call_args.h"
#include "cuda/driver_info.h"
#include "track/device_code.h"
#include "track/object_records.h"

namespace kshim::shim {

struct Module {
  std::uint64_t number = 0;  ///< of the load, counts from 1
  /// Id of the module record for this load: its own, or that of an equal load; 0 = none.
  std::uint64_t record = 0;
  std::uint32_t report = 0;  ///< number of the report that has the record
  bool kept = false;         ///< its image lies beside the report
  bool fits = false;         ///< an image of it fits the device; false also where that was not looked at
  DeviceCode code;
};

/// Lies in zeroed memory.
class Modules {
 public:
  /// Whether add() would write the record of this load, which has failed.
  bool is_new_failure(const CallArgs& facts, const DeviceCode& code, std::optional<std::uint64_t> device,
                      Report& report) noexcept;
  /// A load returned; `module` has its code. Writes its record, after the records that it refers to.
  void add(const CallArgs& facts, const Period& period, std::optional<std::uint64_t> device, Report& report,
           const DriverInfo& driver, ObjectRecords& objects, Module& module) noexcept;
  /// The last kKept loads are kept. False for a number that is not among them.
  bool find(std::uint64_t number, Module& out) const noexcept;
  /// The newest kept load of the code at this address.
  bool find_code(std::uintptr_t code, Module& out) const noexcept;

 private:
  static constexpr std::size_t kKept = 16384;
  /// Limits, because a program that loads in a loop must not fill the disk: successful loads with a record,
  /// and distinct failing loads.
  static constexpr std::size_t kMaxRecords = 4096;
  static constexpr std::size_t kMaxFailed = 1024;
  struct FailedLoad {
    std::uint64_t key;  ///< 0: its record was lost
    std::uint64_t record;
  };

  void begin_in(Report& report) noexcept;
  FailedLoad* find_failed(std::uint64_t key) noexcept;
  FailedLoad* add_failed(std::uint64_t key) noexcept;
  Module& kept(std::uint64_t number) noexcept { return modules_[number % kKept]; }
  const Module& kept(std::uint64_t number) const noexcept { return modules_[number % kKept]; }

  std::uint32_t recorded_report_;  ///< the report that the rest belongs to
  std::size_t succeeded_;
  std::size_t failed_count_;
  FailedLoad failed_[kMaxFailed];
  Module modules_[kKept];  ///< by number, modulo
};

}  // namespace kshim::shim
