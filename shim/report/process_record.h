// SPDX-License-Identifier: Apache-2.0
// The first record of a report: the identity of this process. Read from /proc, not from the host's memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "guest/text_buffer.h"
#include "kshim/report/writer.h"
#include "report/environment.h"
#include "report/report_path.h"

namespace kshim::shim {

using ProcessRecord = report::Record<report::RecordType::process>;

/// Seconds since 1970 as RFC 3339 UTC with microseconds: 2026-11-21T08:45:21.123456Z.
Text<32> rfc3339(std::int64_t seconds, std::uint32_t nanoseconds) noexcept;
Text<32> time_now() noexcept;  ///< of CLOCK_REALTIME
/// Field 22 of a /proc/PID/stat line; 0 where it is not one. The command's name may hold spaces and
/// parentheses.
std::uint64_t start_of(std::string_view stat) noexcept;
/// First of RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK that is a number.
std::optional<std::uint64_t> rank_of(const EnvironmentCopy& environment) noexcept;

/// Buffers for texts that the record refers to.
struct ProcessRecordRoom {
  static constexpr std::size_t kMaxArguments = 1024;
  char raw[65536];
  char shown[65536];
  std::string_view arguments[kMaxArguments];
  char stat[1024];
  char exe[4096];
  std::array<char, 64> user;
};

void fill_process_record(ProcessRecord& record, const ProcessNames& names, const EnvironmentCopy& environment,
                         ProcessRecordRoom& room) noexcept;

}  // namespace kshim::shim
