// SPDX-License-Identifier: Apache-2.0
// The loads of this process: each gets a module record, and is kept for what may fail in it later.
#pragma once
#include <cstdint>
#include <optional>

#include "track/device_code.h"

namespace kshim::shim {

struct Module {
  std::uint64_t number = 0;  ///< of the load, counts from 1
  std::uint64_t record =
      0;  ///< id of the module record that tells of it, its own or an equal one's; 0 = none
  std::uint32_t report = 0;  ///< number of the report that has the record
  DeviceCode code;
};

/// The last kKeptModules loads are kept. False for a number that is not among them.
constexpr std::size_t kKeptModules = 16384;
bool find_module(std::uint64_t number, Module& out) noexcept;
/// The newest kept load of the code at this address.
bool find_module_of(std::uintptr_t code, Module& out) noexcept;
/// Loads seen while the report with this number was written.
std::uint64_t modules_in_report(std::uint32_t report) noexcept;

}  // namespace kshim::shim
