// SPDX-License-Identifier: Apache-2.0
// Where kernels stand in the source, as images compiled with -lineinfo or -G tell.
#pragma once
#include <map>
#include <string>

#include "kshim/image/image.h"

namespace kshim::source {

struct SourceLine {
  std::string file;  ///< as the compiler wrote it: mostly absolute; empty where it is not known
  unsigned line = 0;
};

/// By mangled name; empty for an image without line information, damaged entries left out. `clear`: not
/// compressed.
std::map<std::string, SourceLine> kernel_lines(image::ImageKind kind, Bytes clear);

}  // namespace kshim::source
