// SPDX-License-Identifier: Apache-2.0
// object and library records: written once a report, before the first record that refers to them. An object's
// id is its identity (loaded_objects.h), the same in a fork's child.
#pragma once
#include <cstdint>
#include <string_view>

#include "guest/clock.h"
#include "process/loaded_objects.h"
#include "report/report_file.h"

namespace kshim::shim {

/// Lies in zeroed memory.
class ObjectRecords {
 public:
  /// `runtime`: static, shared or none; empty where the caller cannot tell. Nothing for identity 0.
  void announce(Report& report, std::uint32_t identity, std::string_view runtime) noexcept;
  /// Every CUDA library that is mapped and not yet in the report; with KSHIM_TARGET also an object record of
  /// every file, in which the command looks for device code. Rate-limited: in a program that loads and
  /// unloads libraries all the time, the list takes long to read.
  void announce_libraries(Report& report) noexcept;
  /// Those that the last list of loaded files had.
  void announce_known_libraries(Report& report) noexcept;

 private:
  void announce_all(Report& report, bool known_only) noexcept;

  // By identity: the number of the report that has it.
  std::uint32_t objects_[kMaxIdentities];
  std::uint32_t libraries_[kMaxIdentities];
  std::uint32_t visited_report_;
  bool said_;              ///< that there are more files than identities
  std::uint64_t visited_;  ///< `mapping_id` of the last object that was looked at for that report
  RateLimit visits_;
};

}  // namespace kshim::shim
