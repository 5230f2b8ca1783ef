// SPDX-License-Identifier: Apache-2.0
// The driver's error log (CUDA 12.9): the last lines, for cuLogsDumpToMemory.
#pragma once
#include <string_view>

#include "base/driver_api.h"

namespace kshim::sim {

void log_driver_error(std::string_view call, CUresult result, std::string_view message);

}  // namespace kshim::sim
