// SPDX-License-Identifier: Apache-2.0
// What to do about CUDA libraries that do not belong into one process, or not to this GPU.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/diagnose/libraries.h"

namespace kshim::analysis {

struct LibrarySituation {
  Mixture kind = Mixture::parts;
  std::vector<CudaLibrary> libraries;  ///< those that do not belong together
  std::string search_path;             ///< LD_LIBRARY_PATH of the process; empty = not set
  std::string simulator;               ///< folder of the simulated driver, which only `kshim run` puts there
  std::string shadow;                  ///< the folder of LD_LIBRARY_PATH that has the parts (shadowed)
  std::string wanted;                  ///< the oldest release that will do (older)
  std::string conda;                   ///< CONDA_PREFIX
  std::optional<image::ComputeCapability> device;  ///< that the library does not serve
  bool python = false;
  std::string program;  ///< the command line, quoted for the shell; empty where it is not known
};

Advice advise_libraries(const LibrarySituation& situation);

}  // namespace kshim::analysis
