// SPDX-License-Identifier: Apache-2.0
// Another build of a package that exists already: a flavour for another CUDA, or another release, that has
// code for the GPU.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"

namespace kshim::analysis {

/// Adds the command where one is known. `distribution` overrides what the file is of. True where the build is
/// known, not second hand, to have machine code for the GPU, and known to be another than the one that is
/// there.
bool add_wheel_fix(const AdviceInput& at, std::vector<Fix>& fixes, std::string_view distribution = {});
/// Whether a release of a package that pip installs is known, and none of its builds has code for the GPU.
bool is_without_code(std::string_view package, std::string_view release, image::ComputeCapability device,
                     std::string_view platform);
/// 35: a build that the driver runs. False where none is known.
bool add_wheel_for_driver(const AdviceInput& at, std::vector<Fix>& fixes);
/// What is installed has code for the GPU: which file has none, and how it is built anew.
void add_serving_fixes(const AdviceInput& at, const WheelRow& there, Advice& advice);
/// Says so where no published build is known to serve the GPU.
void add_wheel_remarks(const AdviceInput& at, std::vector<std::string>& remarks);
/// Other flavours of the same release, which people of other GPUs recommend and which have no code for this
/// one.
std::vector<std::string> useless_variants(const AdviceInput& at);

}  // namespace kshim::analysis
