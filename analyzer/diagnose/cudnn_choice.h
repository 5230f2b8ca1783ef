// SPDX-License-Identifier: Apache-2.0
// Which cuDNN a framework got: an older one than it was built with, or one whose parts, which it loads by
// name, lie in a folder of LD_LIBRARY_PATH in another release. Both end a program by a status of cuDNN's own,
// and no call of CUDA fails.
#pragma once
#include <vector>

#include "analyzer/diagnose/libraries.h"
#include "analyzer/diagnose/scene.h"

namespace kshim::analysis {

void add_cudnn_choice(const Scene& scene, const std::vector<CudaLibrary>& libraries,
                      std::vector<LibraryMatch>& matches);

}  // namespace kshim::analysis
