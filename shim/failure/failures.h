// SPDX-License-Identifier: Apache-2.0
// Failed calls: which are one and the same, what is known about each, the record, its repetitions, the alarm.
#pragma once
#include <cstdint>
#include <optional>

#include "cuda/call_args.h"
#include "track/compiler_errors.h"

namespace kshim::shim {

/// A failed call of the driver, with what was known when it came back.
struct DriverFailure {
  CallFacts facts;
  std::uint64_t module = 0;  ///< number of the load; 0 = none
  std::optional<std::uint64_t> device;
};

/// One failure, seen at the driver, at the runtime or at both: at least one is given. The thread is Busy.
void record_failure(const DriverFailure* driver, const CallFacts* runtime) noexcept;

/// A compiler library refused an architecture. The thread is Busy.
void record_refusal(const Refusal& refusal) noexcept;

/// A load failed that has its module record. The thread is Busy. calls.cpp.
void note_failed_load(const CallFacts& facts, std::uint64_t module,
                      std::optional<std::uint64_t> device) noexcept;
/// The end record is to know the numbers of failures and modules, and the report the last repetitions.
void count_failures_at_end() noexcept;

}  // namespace kshim::shim
