// SPDX-License-Identifier: Apache-2.0
// What `kshim scan` is about where nobody says it: this machine's GPUs, the active Python environment.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/image/arch.h"

namespace kshim::scan {

struct MachineGpus {
  std::vector<image::Arch> archs;  ///< each once
  image::Version driver;           ///< newest CUDA that it serves; unknown where nothing tells
  std::string names;               ///< "NVIDIA A100 (8.0) and ..."
};
/// The GPUs of this machine whose compute capability is known.
MachineGpus gpus_here();

struct ActivePython {
  std::string interpreter;
  std::vector<std::filesystem::path> folders;  ///< site-packages
};
/// The environment that VIRTUAL_ENV or CONDA_PREFIX names, else that of the first Python in PATH.
ActivePython active_python();

/// Whether the path is a report of kshim's, or a folder that holds one.
bool holds_reports(const std::filesystem::path& path);

}  // namespace kshim::scan
