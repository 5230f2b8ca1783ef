// SPDX-License-Identifier: Apache-2.0
// The CUDA libraries of a report as far as they can be told apart: family, place, release. A soname says no
// more than the major version, and in wheels a file's name does not either: what is missing is read from the
// file.
#pragma once

#include "analyzer/input/report/report_index.h"

namespace kshim::input {

struct CudaLibrary {
  LibraryRecord record;
  std::string family;            ///< "cublasLt"; empty for a renamed copy, which is alone by design
  unsigned major = 0;            ///< of the soname; 0 = none
  std::string path;              ///< without . and ..
  std::string real;              ///< without links; empty where the file is not there
  std::string folder;            ///< of the file without links, where it is there
  std::string version;           ///< the longest that is known: "13.1.0.3", or "13"
  std::optional<unsigned> cuda;  ///< of cuDNN: the CUDA major that it was built for
  std::string package;           ///< "nvidia-cublas-cu12", where pip brought it
  bool operator==(const CudaLibrary&) const = default;
};

std::vector<CudaLibrary> cuda_libraries(const Report& report, ObjectFiles& files);

/// Whether two releases are known to differ: 12 and 12.8.4 are not.
bool releases_differ(std::string_view a, std::string_view b);
/// Whether both are known down to the patch release, and are the same.
bool releases_agree(std::string_view a, std::string_view b);

/// What a part of cuDNN says of itself, read from the file: "9.19.0" of a datum that each part exports, and
/// the CUDA major that it was built for. Empty and nullopt where it does not tell.
struct CudnnFacts {
  std::string version;
  std::optional<unsigned> cuda;
};
CudnnFacts read_cudnn(const std::string& path, std::string_view build_id);

}  // namespace kshim::input
