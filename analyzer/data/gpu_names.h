// SPDX-License-Identifier: Apache-2.0
// GPUs by the names under which people and tools speak of them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kshim/image/arch.h"

namespace kshim::explain {

struct GpuName {
  std::string name;
  image::ComputeCapability cc;
};
/// One pattern that finds every name, the longest where several fit.
std::string gpu_name_pattern();
/// In the order in which they stand there.
std::vector<GpuName> gpus_named_in(std::string_view text);

}  // namespace kshim::explain
