// SPDX-License-Identifier: Apache-2.0
// How much of one report is kept in memory. The shim's own limits (docs/report-format.md) are far below; a
// report of gigabytes, by whomever it was written, is read to its end and kept up to here, and a note says
// what was left out.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/input/report/report.h"
#include "kshim/report/writer.h"

namespace kshim::analysis {

/// Records of one type that are kept, and bytes of memory for them.
struct RecordLimit {
  std::size_t records = 0;
  std::size_t bytes = 0;
};
/// Together 232 MiB. The arrays that hold the records may take twice their size while they grow.
RecordLimit limit_of(report::RecordType type);

/// The memory that a record takes, about: itself and what it holds on the heap.
std::size_t weight_of(const ProcessRecord& record);
std::size_t weight_of(const DriverRecord& record);
std::size_t weight_of(const DeviceRecord& record);
std::size_t weight_of(const ObjectRecord& record);
std::size_t weight_of(const ModuleRecord& record);
std::size_t weight_of(const FailureRecord& record);
std::size_t weight_of(const ReadRecord& record);
std::size_t weight_of(const GapRecord& record);
std::size_t weight_of(const LibraryRecord& record);
std::size_t weight_of(const BypassRecord& record);
std::size_t weight_of(const PackageRecord& record);
std::size_t weight_of(const CoverageRecord& record);
/// Of what such a list holds.
std::size_t weight_of(const std::vector<NativeFrame>& frames);
std::size_t weight_of(const std::vector<PythonFrame>& frames);

}  // namespace kshim::analysis
