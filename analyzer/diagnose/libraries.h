// SPDX-License-Identifier: Apache-2.0
// Rules about CUDA libraries that do not belong into one process, or not to this GPU. What is by design is no
// match: copies that a wheel has renamed, compilers of several releases, parts that are released apart.
#pragma once

#include "analyzer/input/report/cuda_library.h"

namespace kshim::diagnose {

enum class LibraryConflictKind : std::uint8_t {
  parts,    ///< of one library, from two places or releases
  copies,   ///< of one library, of different builds
  majors,   ///< of one library, side by side
  built,    ///< cuDNN, for another CUDA than the libraries it calls
  dropped,  ///< cuDNN, and a GPU that it does not serve
};

struct LibraryMatch {
  core::Cause cause = core::Cause::mixed_cuda_libraries;
  LibraryConflictKind kind = LibraryConflictKind::parts;
  double confidence = 0;
  std::string headline = {};
  std::string because = {};                             ///< a sentence
  std::vector<std::size_t> libraries = {};              ///< whose, by index
  std::optional<image::ComputeCapability> device = {};  ///< that is not served
};

/// What calls for a look, the surest first. `devices`: of the process.
std::vector<LibraryMatch> judge_libraries(const std::vector<input::CudaLibrary>& libraries,
                                          std::span<const image::ComputeCapability> devices);
/// Whether the libraries are broken together, rather than unusual.
bool is_strong(LibraryConflictKind kind);
/// Codes that such a process gives: kernels and handles that one copy registered and the other does not know,
/// images of another release.
bool may_be_library_conflict(int code);

}  // namespace kshim::diagnose
