// SPDX-License-Identifier: Apache-2.0
// What is known about one failure: the input of the rules. Plain values, so that a rule can be tested as a
// table.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/cuda_error.h"
#include "kshim/image/image.h"
#include "kshim/image/select.h"

namespace kshim::core {

/// Where the list of images comes from; the nearer to the kernel, the more it proves.
enum class ImageScope : std::uint8_t {
  none,    ///< no list
  file,    ///< all images of the file: the failing module may have fewer
  module,  ///< of the module that failed
};

struct ImageFact {
  image::Candidate candidate;
  image::Compression compression = image::Compression::none;
  std::uint64_t count = 1;
  std::optional<bool> has_kernel =
      {};  ///< whether the failing kernel is inside; nullopt where it was not read
  image::Version toolkit = {};
  bool operator==(const ImageFact&) const = default;
};

/// A compiler that was asked for an architecture and refused: a library in the process, or a program.
struct CompilerFacts {
  std::string name;  ///< NVRTC, nvJitLink; of a program the name of its file: ptxas, ptxas-blackwell
  image::Arch asked;
  image::Version version;          ///< of its CUDA; unknown = {0, 0}
  bool by_code = false;            ///< its code says by itself that it is about the architecture
  std::vector<image::Arch> known;  ///< what it compiles for by its own word; empty where it does not tell
  std::string path;                ///< of a program: its file
  image::Version input_isa;        ///< of ptxas: of its input
  std::string selects;             ///< the variable that decides which program is taken; empty: none does
  std::string other;               ///< a program of this machine that takes what this one refused
  image::Version other_version;
  bool operator==(const CompilerFacts&) const = default;
};

struct Facts {
  std::vector<int> codes;  ///< of every layer, innermost first; empty for a gap that nothing ran into
  std::string stage;       ///< load, lookup, query, launch, init, other; empty as above
  std::optional<image::ComputeCapability> device;
  image::Version driver;  ///< CUDA version; unknown = {0, 0}
  image::JitSwitches switches;
  std::vector<ImageFact> images;
  ImageScope scope = ImageScope::none;
  bool asked_by_name = false;  ///< the program itself asked for the kernel, by a name that it holds as text
  std::vector<std::string> kernels;       ///< mangled, of all images, where every image was read
  std::vector<std::string> alike;         ///< those of them that have the name asked for in the source
  bool loose = false;                     ///< the image came from memory, not from a mapped file
  std::string damage;                     ///< what the parser found wrong with the image; empty = nothing
  bool asks_for_variable = false;         ///< the call looks a variable of the device code up
  bool probing_caller = false;            ///< a library known to try and go on made the call
  bool went_on = false;                   ///< no launch of this module failed, and the process lived on
  std::optional<CompilerFacts> compiler;  ///< then `codes` is empty: its codes are not CUDA's
  std::string cache;                      ///< whose cache holds the image; empty = none, or not known
  bool first = false;                     ///< nothing had failed in the process before
  std::size_t devices = 0;                ///< that the process sees
  bool driver_found = true;               ///< libcuda.so.1 is mapped
  image::Version runtime;                 ///< of the shared runtime that failed, where known
  bool parent_initialized = false;        ///< the process was forked from one that had initialized CUDA

  bool has_code(int code) const { return std::ranges::find(codes, code) != codes.end(); }
  bool has_code_with(unsigned traits) const {
    return std::ranges::any_of(codes, [traits](int code) { return code_has(code, traits); });
  }
  bool operator==(const Facts&) const = default;
};

}  // namespace kshim::core
