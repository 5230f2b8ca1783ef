// SPDX-License-Identifier: Apache-2.0
// The compilers of CUDA that a machine has, as programs: ptxas, tileiras, nvcc, cicc, nvlink.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/input/machine/machine.h"
#include "kshim/image/arch.h"

namespace kshim::doctor {

struct CompilerProgram {
  std::string path;  ///< without links
  image::Version version;
};
/// Programs of that name, and ptxas-blackwell beside ptxas: of PATH, of the toolkits, of the Python
/// environments at hand and of `packages` (a site-packages folder; may be empty). Only those whose file tells
/// their version; each once.
std::vector<CompilerProgram> find_compilers(const Machine& machine, std::string_view name,
                                            const std::string& packages);
/// Which CUDA release the program is of; unknown where its file does not tell. It is read and not run.
image::Version version_of_compiler(const std::filesystem::path& file);

}  // namespace kshim::doctor
