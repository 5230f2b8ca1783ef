// SPDX-License-Identifier: Apache-2.0
// What is inside an image: its kernels and the toolkit that made it. Decompresses payloads.
#pragma once
#include <functional>
#include <string_view>

#include "analyzer/model/object_file.h"

namespace kshim::analysis {

/// Appends the images of a fatbin. With `part`, a relocatable part: only its PTX can be loaded.
void read_fatbin(Bytes bytes, bool part, Depth depth, FileModule& out);
/// Appends a cubin or PTX that stands outside a fatbin.
void read_bare_image(Bytes bytes, Depth depth, FileModule& out);

/// Calls visit(mangled name) for each kernel of a cubin or PTX in the clear, until it answers false. False
/// where the image cannot be read to its end.
bool each_kernel_name(image::ImageKind kind, Bytes clear, const std::function<bool(std::string_view)>& visit);
/// The toolkit that made a cubin, as its notes say; unknown where they do not, and for other kinds.
image::Version toolkit_of(image::ImageKind kind, Bytes clear);

}  // namespace kshim::analysis
