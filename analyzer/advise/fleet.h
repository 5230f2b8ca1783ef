// SPDX-License-Identifier: Apache-2.0
// The smallest list of architectures that one file has to be built for to serve a set of GPUs. What serves
// what is judged by kshim/image/select.h alone; what builds what is in the table of toolkits.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/image_contents.h"

namespace kshim::advise {

/// One architecture of a list, as machine code.
struct FleetArch {
  image::Arch arch;
  bool added = false;                            ///< the file lacks it, or a module of the file does
  std::vector<image::ComputeCapability> serves;  ///< of the fleet: the GPUs that take it
};

struct FleetList {
  std::vector<FleetArch> archs;  ///< ascending
};

/// A GPU of the fleet that this file does not run on today.
struct FleetBreak {
  std::string host;
  unsigned ordinal = 0;
  std::string gpu;  ///< "Tesla T4"
  image::ComputeCapability cc;
};

struct FleetPlan {
  std::string object;
  std::string build_id;
  std::vector<image::ComputeCapability> gpus;     ///< the fleet
  std::vector<image::ComputeCapability> lacking;  ///< those of them that lack code
  FleetList smallest;
  image::Arch ptx;                       ///< to be brought as PTX too: of the newest GPUs, for later ones
  std::vector<image::Version> toolkits;  ///< that build all of `smallest`, ascending
  std::vector<image::ComputeCapability>
      compiled;  ///< served by PTX alone: no toolkit builds for them and all others
  std::vector<image::ComputeCapability> unserved;  ///< by nothing that the toolkit of the list builds
  std::vector<FleetBreak> breaks;                  ///< of more than 256, the first
  std::uint64_t breaks_total = 0;
};

/// What a plan is made from.
struct FleetQuestion {
  std::vector<image::ComputeCapability> gpus;
  std::vector<image::ComputeCapability> lacking;  ///< as findings tell: of some module
  std::vector<device_code::ImageCount> images;    ///< of the file, as far as it is known
};

/// `lacking` is completed with what no image at all serves. nullopt where nothing is lacking.
std::optional<FleetPlan> plan_fleet(FleetQuestion question);

}  // namespace kshim::advise
