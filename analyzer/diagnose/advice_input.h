// SPDX-License-Identifier: Apache-2.0
// What the advice about a finding depends on: the facts that the rules saw, and whose file it is. Reports,
// scans and logs fill in the same structure.
#pragma once

#include "analyzer/diagnose/libraries.h"
#include "analyzer/diagnose/places.h"

namespace kshim::diagnose {

/// CUDA libraries that do not belong into one process, or not to this GPU.
struct LibraryConflict {
  LibraryConflictKind kind = LibraryConflictKind::parts;
  std::vector<CudaLibrary> libraries;  ///< those that do not belong together
  std::string search_path;             ///< LD_LIBRARY_PATH of the process; empty = not set
  std::string simulator;               ///< folder of the simulated driver, which only `kshim run` puts there
  std::string conda;                   ///< CONDA_PREFIX
  bool operator==(const LibraryConflict&) const = default;
};

struct AdviceInput : Facts {
  Cause cause = Cause::unknown;
  std::optional<int> code;
  PythonEnvironment python_env;  ///< of the process that failed
  std::string object;            ///< path, empty for a loose image
  Origin origin = Origin::program;
  bool shared_library = false;
  bool relocatable = false;         ///< linked from relocatable device code
  bool bare = false;                ///< a fatbin, cubin or PTX by itself, in a file or in memory
  bool object_file = false;         ///< a .o, by itself or in an archive: nvcc -c made it
  bool links_torch = false;         ///< is built by PyTorch's extension builder, as far as can be told
  bool guarded = false;             ///< every module is served, and the image taken lacks the kernel
  std::string archive;              ///< what `object` is a member of; empty otherwise
  std::string_view linked_library;  ///< whose code lacks the architecture, of NVIDIA's static ones; or empty
  std::string build_folder;         ///< Origin::cmake
  ProjectName package;              ///< as its manager calls it, where known
  std::string package_version;
  std::string manager;      ///< pip, conda, dpkg, rpm; empty = pip where it is Python's, else not known
  std::string environment;  ///< prefix of the conda or virtual environment that the file lies in
  std::string channel;      ///< of a conda package
  std::string source;       ///< what pip built it from here (owner/direct_url.h); empty: it came built
  std::string variant;      ///< for which CUDA the package is: cu128; empty where its version or name tells
  std::string platform;     ///< "linux x86_64"; empty = by the GPU
  std::string software;     ///< what failed, where no file is known: "torch", "cuDNN"
  std::string message;      ///< the row of the table messages that decides, where a log has it
  std::map<std::string, std::string> said;  ///< what that message and the lines beside it name, by the word
                                            ///< that fixes ask for
  std::vector<std::string> shows;  ///< what else the log shows: wsl, container, windows, jetson, restarted,
                                   ///< launched
  bool from_source = false;        ///< the user built `software` from its source
  bool released = false;           ///< a finished program: its user builds nothing
  bool builds = true;              ///< false where nothing shows that the user built it
  bool windows = false;            ///< its commands are to be those of Windows
  std::string interpreter;         ///< what starts Python there, where a log names one of its own
  std::string build_system;     ///< make, cmake, meson, bazel, cargo or spack, where a log tells; else empty
  std::string arch_variable;    ///< of that build, for its architectures; empty: not known
  bool arch_dots = false;       ///< with values such as 8.6
  bool arch_flags = false;      ///< with options of nvcc as its value
  bool container = false;       ///< it ran in a container
  std::string container_image;  ///< by name, where a log has it
  std::vector<Assumed> unsaid;  ///< what the log does not say; of a report or a file: nothing
  std::string device_name;
  std::vector<image::ComputeCapability> other_devices;  ///< of the machine, that are not to lose their code
  std::vector<image::ComputeCapability> also;  ///< that lack code in the same way: one build is for all
  std::string kernel_module;
  image::Version toolkit;                 ///< that built the file; unknown = {0, 0}
  std::string toolkit_how;                ///< how that is known: "its cubins say so"
  std::vector<image::Candidate> have;     ///< what is built again has all of these
  std::vector<std::string> switch_names;  ///< names of the JIT switches that are on
  std::string serving_device;  ///< value for CUDA_VISIBLE_DEVICES that selects a GPU that is served
  std::vector<std::string> kernel_images;  ///< images that do hold the failing kernel
  image::Version newest_cubin;             ///< toolkit of the newest cubin; unknown = {0, 0}
  std::string cache_variable;              ///< that says where `cache` is
  std::string cache_entry;                 ///< what is to go
  std::string removable;  ///< what of the caller's own caches may be deleted (commands.h): that entry, or
                          ///< the extension
  bool jit_cache_off = false;  ///< CUDA_CACHE_DISABLE=1
  std::string extension;       ///< the package of the frame that called, beside PyTorch; empty: not known
  std::string caller_package;  ///< the Python package whose code called the compiler, for pip
  bool python = false;         ///< the process runs Python
  std::string python_version;  ///< "3.10", where it is known
  bool torch = false;          ///< with PyTorch in it
  std::string torch_build;     ///< "1.10.0+cu113", where a log names both
  image::Version ptx;          ///< ISA version of the PTX that was refused, where that was said
  image::Version reads;        ///< and the newest that its reader takes
  bool asks_for_cuda = false;  ///< `runtime` is what an image of a container demands of the driver
  bool ranked = false;         ///< a launcher started the process as one of several
  std::string program;         ///< the command line, quoted for the shell; empty where it is not known
  std::string need;            ///< of files that were not read: the architecture that was asked about
  std::vector<std::string> unread;        ///< those files
  std::optional<image::Candidate> taken;  ///< the image without the kernel's body that the driver takes
  std::string caller;                     ///< file that reports what `software` left behind
  std::optional<MissingLibrary> missing;
  std::optional<LibraryConflict> conflict;
  bool foreign = false;  ///< the report is another user's: no command may hold a name that it gives
  bool operator==(const AdviceInput&) const = default;
};

/// Whether what failed was fetched as a finished build.
inline bool comes_built(const AdviceInput& at) {
  if (!at.source.empty()) return false;
  return at.origin == Origin::installed || (at.object.empty() && !at.package.empty() && !at.from_source);
}

/// The finding's cause, code and object, and what the rules saw. `cubins`: the newest toolkit that the file's
/// cubins name.
AdviceInput advice_input(const Finding& finding, Facts facts, image::Version cubins);

/// A finding of a cause, with the severity of that cause.
Finding new_finding(Cause cause, double confidence, std::string headline = {});
/// What the finding's fixes depend on: `at`, for its cause.
void set_about(AdviceInput at, Finding& finding);

/// A file, from a report, a scan or a log.
struct FileFacts {
  std::string path;      ///< in the process or on this machine; of a member, that of the archive
  std::string readable;  ///< where its ELF headers can be read; empty = nowhere
  bool bare = false;
  bool relocatable = false;
  bool shared_library = false;
  std::vector<image::Candidate> images = {};  ///< all of them, where they were read
};
void set_file(const FileFacts& file, AdviceInput& at);
/// Whose file it is. Where it came from only `here` may say, what this machine's own records have of it: a
/// report could name anybody's source.
void set_package(const PackageRecord& package, const PackageRecord* here, AdviceInput& at);

/// The platform of the situation, else the one that the GPU is likeliest in.
std::string platform_of(const AdviceInput& at);

}  // namespace kshim::diagnose
