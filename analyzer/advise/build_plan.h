// SPDX-License-Identifier: Apache-2.0
// Which architectures a rebuild should name, and with which toolkit it builds them.
#pragma once

#include "analyzer/say/step.h"

namespace kshim::advise {

/// The architectures of `have` plus what serves `device`, and `also` as far as the toolkit can, and PTX of
/// the newest. nullopt when `toolkit` can build nothing for `device` that the driver takes.
std::optional<say::BuildPlan> plan_build(const std::vector<image::Candidate>& have,
                                         image::ComputeCapability device, const data::ToolkitRow& toolkit,
                                         image::Version driver,
                                         const std::vector<image::ComputeCapability>& also = {});

/// The toolkit to build with for a device, when the one at hand cannot: the newest of the wanted major that
/// emits code for it and is not newer than the driver, else the newest of these that also builds all of
/// `have`, else the newest that is not newer than the driver, else the oldest that can.
const data::ToolkitRow* recommend_toolkit(image::ComputeCapability device, std::optional<image::Version> near,
                                          image::Version driver,
                                          const std::vector<image::Candidate>& have = {});

/// The newest toolkit that emits machine code which runs on the device; nullptr where none does.
const data::ToolkitRow* last_with_code_for(image::ComputeCapability device);

}  // namespace kshim::advise
