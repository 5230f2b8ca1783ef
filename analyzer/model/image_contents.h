// SPDX-License-Identifier: Apache-2.0
// What is inside an image: its kernels and the toolkit that made it. Decompresses payloads.
#pragma once
#include "analyzer/model/object_file.h"

namespace kshim::analysis {

/// Appends the images of a fatbin. With `part`, a relocatable part: only its PTX can be loaded.
void read_fatbin(Bytes bytes, bool part, Depth depth, FileModule& out);
/// Appends a cubin or PTX that stands outside a fatbin.
void read_bare_image(Bytes bytes, Depth depth, FileModule& out);

}  // namespace kshim::analysis
