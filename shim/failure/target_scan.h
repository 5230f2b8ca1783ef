// SPDX-License-Identifier: Apache-2.0
// KSHIM_TARGET: the shim cannot see what a static runtime registers, and the runtime loads a fatbin only when
// it is needed. To find all gaps of a target, the fatbins of every loaded file are read.
#pragma once
#include <cstdint>

#include "guest/function_ref.h"
#include "track/device_code.h"

namespace kshim::shim {

/// Calls visit(code) for the fatbins of each file whose `mapping_id` is larger than `after`; returns the
/// largest there is. Without the shim's lock: files are read, and their server may not answer.
std::uint64_t scan_mapped_files(std::uint64_t after, FunctionRef<void(const DeviceCode&)> visit) noexcept;

}  // namespace kshim::shim
