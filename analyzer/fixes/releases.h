// SPDX-License-Identifier: Apache-2.0
// What comes built from somebody else: another release of it is the answer.
#pragma once
#include <string>
#include <vector>

#include "analyzer/fixes/advice.h"
#include "analyzer/fixes/build_plan.h"

namespace kshim::analysis {

/// The toolkits that build for all of a plan: "CUDA 8.0 to 12.9", "CUDA 12.8 and newer"; empty where none
/// does.
std::string toolkit_range(const BuildPlan& plan);
std::string toolkit_range(image::ComputeCapability cc);

/// Whether the file, or the archive it is in, is a library that comes built from NVIDIA.
bool is_vendors(const Situation& at);
void add_release_fix(const Situation& at, std::vector<Fix>& fixes);

/// Whether it is of PyTorch's own wheel, and not an extension.
bool is_torch_itself(const Situation& at);
void add_torch_wheel_fix(const Situation& at, std::vector<Fix>& fixes);

}  // namespace kshim::analysis
