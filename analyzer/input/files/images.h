// SPDX-License-Identifier: Apache-2.0
// Images of containers among the files to read.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/input/files/image_archive.h"
#include "analyzer/input/files/walk.h"

namespace kshim::scan {

/// An archive or folder of images, with what its bytes lie in.
struct OpenImages {
  std::vector<UnnamedFile> kept;
  std::vector<analysis::MappedFile> files;
  ImageArchive archive;
};
/// nullopt for an input that holds none. An archive that is compressed as a whole is unpacked into a file
/// without a name.
std::optional<OpenImages> open_images(const Input& input, std::vector<std::string>& notes);

/// Whether the bytes are a compressed tar, whatever the file is called.
bool is_compressed_tar(Bytes bytes);

}  // namespace kshim::scan
