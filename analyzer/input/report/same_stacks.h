// SPDX-License-Identifier: Apache-2.0
// Failures that name another one for their frames get a copy of them: what comes after the reader sees
// frames.
#pragma once
#include <cstddef>

#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// After the last line. What is named must have the frames itself: so much is in every record of a shim, and
/// no chain or circle is followed. Frames stay empty where that is not so, and where copies would take more
/// than `room` bytes; notes say of how many failures, and why. The answer: bytes of memory taken.
std::size_t fill_same_stacks(Report& report, std::size_t room);

}  // namespace kshim::analysis
