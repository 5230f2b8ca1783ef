// SPDX-License-Identifier: Apache-2.0
// Whether a file belongs to PyTorch's extensions, whose builder alone heeds TORCH_CUDA_ARCH_LIST.
#pragma once
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::analysis {

/// By the place: beside PyTorch's own files, or in its cache of extensions built on the fly.
bool lies_beside_torch(std::string_view path);
/// By the libraries that an ELF file is linked with; false for what cannot be read.
bool links_torch(Bytes file);
bool file_links_torch(std::string_view path);

}  // namespace kshim::analysis
