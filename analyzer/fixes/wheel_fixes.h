// SPDX-License-Identifier: Apache-2.0
// Another build of a package that exists already: a flavour for another CUDA, or another release, that has
// code for the GPU.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/fixes/advice.h"
#include "analyzer/knowledge/knowledge.h"

namespace kshim::analysis {

struct WheelChoice {
  const WheelRow* row = nullptr;
  std::string pin;    ///< "==2.9.1", "==2.5.*" or nothing: for the newest
  bool same = false;  ///< the release that is installed
};
/// Of the release that is there, else of the newest that has code for the GPU; machine code before PTX, and
/// the oldest CUDA of these, which runs on most drivers. nullopt where no row serves it.
std::optional<WheelChoice> choose_wheel(const WheelName& wheel, const InstallerRow& installer,
                                        image::ComputeCapability device, std::string_view platform,
                                        image::Version driver);
/// The platform of the situation, else the one that the GPU is likeliest in.
std::string platform_of(const Situation& at);
/// What package the failing file, or what is named in its place, is of; empty distribution where no row knows
/// it.
WheelName wheel_of(const Situation& at);

/// Adds the command where one is known. `distribution` overrides what the file is of. True where the build is
/// known, not second hand, to have machine code for the GPU, and known to be another than the one that is
/// there.
bool add_wheel_fix(const Situation& at, std::vector<Fix>& fixes, std::string_view distribution = {});
/// Other flavours of the same release, which people of other GPUs recommend and which have no code for this
/// one.
std::vector<std::string> useless_variants(const Situation& at);

}  // namespace kshim::analysis
