// SPDX-License-Identifier: Apache-2.0
// What to do about a finding, what not to try, and what is fine. Pure functions of what is known about the
// finding.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/core/finding.h"
#include "analyzer/core/python_environment.h"
#include "kshim/image/select.h"

namespace kshim::analysis {

/// How the failing file came to be, as far as its place and its neighbours tell.
enum class Origin : std::uint8_t {
  program,           ///< built by hand or by an unknown build system
  cmake,             ///< lies in a CMake build folder
  python_extension,  ///< a Python extension in a checkout or a cache
  installed,         ///< belongs to an installed Python package
  system,            ///< under the system's or the toolkit's folders
  memory,            ///< no file: an image the program made or read by itself
};

struct Situation {
  PythonEnvironment python_env;  ///< of the process that failed
  Cause cause = Cause::unknown;
  std::optional<int> code;
  std::string object;  ///< path, empty for a loose image
  Origin origin = Origin::program;
  bool shared_library = false;
  bool relocatable = false;  ///< linked from relocatable device code
  bool bare = false;         ///< a fatbin, cubin or PTX by itself, in a file or in memory
  bool object_file = false;  ///< a .o, by itself or in an archive: nvcc -c made it
  bool links_torch = false;  ///< is built by PyTorch's extension builder, as far as can be told
  bool guarded = false;      ///< every module is served, and the image taken lacks the kernel
  std::string archive;       ///< what `object` is a member of; empty otherwise
  std::string build_folder;  ///< Origin::cmake
  std::string package;       ///< as its manager calls it, where known
  std::string package_version;
  std::string manager;       ///< pip, conda, dpkg, rpm; empty = pip where it is Python's,
                             ///< else not known
  std::string environment;   ///< prefix of the conda or virtual environment that the file lies in
  std::string channel;       ///< of a conda package
  std::string source;        ///< what pip built it from here (packages/direct_url.h); empty: it came built
  std::string variant;       ///< for which CUDA the package is: cu128; empty where its version or name tells
  std::string platform;      ///< "linux x86_64"; empty = by the GPU
  std::string software;      ///< what failed, where no file is known: "torch", "cuDNN"
  bool from_source = false;  ///< the user built `software` from its source
  std::string build_system;  ///< make, cmake, meson or bazel, where a log tells; else empty
  std::optional<image::ComputeCapability> device;
  std::string device_name;
  std::vector<image::ComputeCapability> other_devices;  ///< of the machine, that are not to lose their code
  image::Version driver;
  std::string kernel_module;
  image::Version runtime;   ///< of the shared runtime that failed; unknown = {0, 0}
  image::Version toolkit;   ///< that built the file; unknown = {0, 0}
  std::string toolkit_how;  ///< how that is known: "its cubins say so"
  std::vector<image::Candidate> have;
  std::vector<std::string> switches;  ///< names of the JIT switches that are on
  std::string serving_device;         ///< value for CUDA_VISIBLE_DEVICES that selects a GPU that is served
  std::vector<std::string> kernel_images;  ///< images that do hold the failing kernel
  bool loose = false;                      ///< made in memory by the program or a compiler in it
  bool asked_by_name = false;              ///< the kernel's name is text in the program
  std::vector<std::string> kernels;        ///< of all images, mangled; empty where not known
  std::vector<std::string> alike;          ///< those of them that the name asked for may mean
  image::Version newest_cubin;             ///< toolkit of the newest cubin; unknown = {0, 0}
  std::string cache;                       ///< whose cache the image lies in
  std::string cache_variable;              ///< that says where the cache is
  std::string cache_entry;                 ///< what is to go
  std::string removable;  ///< what of the caller's own caches may be deleted (printable.h): that entry, or
                          ///< the extension
  std::string compiler;   ///< NVRTC or nvJitLink, that refused `asked`
  image::Version compiler_version;  ///< unknown = {0, 0}
  image::Arch asked;                ///< by whoever called the compiler
  bool serves_device = false;       ///< the compiler knows `device`
  std::string caller_package;       ///< the Python package whose code called it, for pip
  bool python = false;              ///< the process runs Python
  std::string python_version;       ///< "3.10", where it is known
  bool torch = false;               ///< with PyTorch in it
  image::Version ptx;               ///< ISA version of the PTX that was refused, where that was said
  image::Version reads;             ///< and the newest that its reader takes
  bool asks_for_cuda = false;       ///< `runtime` is what an image of a container demands of the driver
  bool ranked = false;              ///< a launcher started the process as one of several
  std::string program;              ///< the command line, quoted for the shell; empty where it is not known
};

/// Whether what failed was fetched as a finished build.
inline bool comes_built(const Situation& at) {
  if (!at.source.empty()) return false;
  return at.origin == Origin::installed || (at.object.empty() && !at.package.empty() && !at.from_source);
}

struct Advice {
  std::vector<Fix> fixes;  ///< ordered by what works soonest
  std::vector<DeadEnd> dead_ends;
  std::vector<std::string> remarks;
};

Advice advise(const Situation& situation);

}  // namespace kshim::analysis
