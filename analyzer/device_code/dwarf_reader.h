// SPDX-License-Identifier: Apache-2.0
// The part of host_lines.h that runs in a process of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/device_code/host_lines.h"

namespace kshim::source {

/// Not for the process of the analysis: libdw trusts more of a file than it should.
std::vector<SourceFrames> read_dwarf(const HostFile& file, const std::vector<std::uint64_t>& addresses);

}  // namespace kshim::source
