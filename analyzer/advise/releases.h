// SPDX-License-Identifier: Apache-2.0
// What comes built from somebody else: another release of it is the answer.
#pragma once
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/build_plan.h"

namespace kshim::analysis {

/// The toolkits that build for all of a plan: "CUDA 8.0 to 12.9", "CUDA 12.8 and newer"; empty where none
/// does.
std::string toolkit_range(const BuildPlan& plan);
std::string toolkit_range(image::ComputeCapability cc);

/// Whether the file, or the archive it is in, is a library that comes built from NVIDIA.
bool is_vendors(const AdviceInput& at);
void add_release_fix(const AdviceInput& at, std::vector<Fix>& fixes);
/// The release of cuDNN or TensorRT that serves the GPU, where the one that is there does not.
void add_listed_release_fix(const AdviceInput& at, std::vector<Fix>& fixes);

/// "cuDNN", "TensorRT": the library whose releases library_support.def knows; empty where it knows none.
std::string_view listed_library(const AdviceInput& at);
/// The release of such a library that serves the GPU: "<9.11", ">=10.8"; empty where none does, or where it
/// is there.
std::string release_range(const AdviceInput& at);

}  // namespace kshim::analysis
