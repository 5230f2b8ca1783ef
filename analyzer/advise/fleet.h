// SPDX-License-Identifier: Apache-2.0
// Which architectures one file has to be built for to serve a set of GPUs: the smallest list, and the list
// with each GPU's own. What serves what is judged by kshim/image/select.h alone; what builds what is in the
// table of toolkits.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/image_contents.h"
#include "kshim/image/arch.h"

namespace kshim::analysis {

/// One architecture of a list, as machine code.
struct FleetArch {
  image::Arch arch;
  bool added = false;                            ///< the file lacks it, or a module of the file does
  std::vector<image::ComputeCapability> serves;  ///< of the fleet: the GPUs that take it
};

struct FleetList {
  std::vector<FleetArch> archs;        ///< ascending
  std::optional<std::uint64_t> bytes;  ///< that what is added takes, estimated
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
  FleetList native;
  image::Arch ptx;                       ///< to be brought as PTX too: of the newest GPUs, for later ones
  std::vector<image::Version> toolkits;  ///< that build all of `smallest`, ascending
  std::vector<image::ComputeCapability>
      compiled;  ///< served by PTX alone: no toolkit builds for them and all others
  std::vector<image::ComputeCapability> unserved;  ///< by nothing that the toolkit of the list builds
  std::vector<FleetBreak> breaks;                  ///< of more than 256, the first
  std::uint64_t breaks_total = 0;
  std::uint64_t bytes_each = 0;  ///< what one architecture takes, estimated; 0 = not known
  std::string basis;             ///< of the estimate, as a clause
};

/// What a plan is made from.
struct FleetQuestion {
  std::vector<image::ComputeCapability> gpus;
  std::vector<image::ComputeCapability> lacking;  ///< as findings tell: of some module
  std::vector<ImageCount> images;                 ///< of the file, as far as it is known
};

/// `lacking` is completed with what no image at all serves. nullopt where nothing is lacking.
std::optional<FleetPlan> plan_fleet(FleetQuestion question);

/// "sm_70 sm_75 sm_80 (8.6, 8.9) sm_120": with the GPUs that an entry serves besides its own.
std::string list_text(const FleetList& list);
/// As CMAKE_CUDA_ARCHITECTURES takes it: "70-real;75-real;120".
std::string cmake_text(const FleetPlan& plan);
/// "CUDA 12.8 or 12.9 builds all of it", or why none does.
std::string toolkits_text(const FleetPlan& plan);
/// "adds about 12 MB (...)"; empty where there is no estimate.
std::string size_text(const FleetPlan& plan, const FleetList& list);
/// "node003 (Tesla T4, 7.5), 8 GPUs of node004 (Tesla T4, 7.5) and 12 more GPUs"; empty where none is known.
std::string breaks_text(const FleetPlan& plan);
/// "7.0, 7.5".
std::string names_of(const std::vector<image::ComputeCapability>& gpus);

}  // namespace kshim::analysis
