// SPDX-License-Identifier: Apache-2.0
// What a kernel takes of a multiprocessor, in words.
#pragma once
#include <string>

#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// "24 to 40 registers, 2048 bytes shared, up to 256 threads", over all architectures; empty where nothing is
/// known, as of PTX.
std::string needs_text(const ScannedKernel& kernel);

}  // namespace kshim::scan
