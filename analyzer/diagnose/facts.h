// SPDX-License-Identifier: Apache-2.0
// What is known about one failure or gap: the input of the rules and of the advice. Reports, files and logs
// fill in the same seven structures. Plain values, so that a rule can be tested as a table.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/data/wheels.h"
#include "analyzer/device_code/object_file.h"
#include "analyzer/diagnose/libraries.h"
#include "analyzer/diagnose/options.h"
#include "analyzer/owner/package.h"
#include "kshim/base/cuda_error.h"
#include "kshim/image/image.h"
#include "kshim/image/select.h"

namespace kshim::diagnose {

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

/// How a file came to be, as far as its place and its neighbors tell.
enum class Origin : std::uint8_t {
  program,           ///< built by hand or by an unknown build system
  cmake,             ///< lies in a CMake build folder
  python_extension,  ///< a Python extension in a checkout or a cache
  installed,         ///< belongs to an installed Python package
  system,            ///< under the system's or the toolkit's folders
  memory,            ///< no file: an image the program made or read by itself
};

/// CUDA libraries that do not belong into one process, or not to this GPU.
struct LibraryConflict {
  LibraryConflictKind kind = LibraryConflictKind::parts;
  std::vector<input::CudaLibrary> libraries;  ///< those that do not belong together
  std::string search_path;                    ///< LD_LIBRARY_PATH of the process; empty = not set
  std::string simulator;  ///< folder of the simulated driver, which only `kshim run` puts there
  std::string conda;      ///< CONDA_PREFIX
  bool operator==(const LibraryConflict&) const = default;
};

/// How a list of images is known, and what they hold: for evidence. Advice does not ask for it.
struct ImageSource {
  std::string clause;                        ///< "read from the file", "as the report says"
  std::uint32_t line = 0;                    ///< of the report, where it says so
  std::vector<device_code::FileImage> read;  ///< with kernels, where the file was read
  bool complete = false;                     ///< `read` names every kernel
};

/// Versions are {0, 0} and texts are empty where they are not known.
struct Facts {
  core::Cause cause = core::Cause::unknown;  ///< what the rules made of the rest: only advice asks for it

  struct Gpu {
    std::optional<image::ComputeCapability> cc;
    std::size_t count = 0;                         ///< that the process sees
    std::vector<image::ComputeCapability> others;  ///< of the machine, that are not to lose their code
    std::vector<image::ComputeCapability> also;    ///< that lack code in the same way: one build is for all
    std::string serving;  ///< value for CUDA_VISIBLE_DEVICES that selects a GPU that is served
    bool operator==(const Gpu&) const = default;
  } gpu;

  struct Driver {
    image::Version cuda;  ///< that it is for
    std::string module;   ///< its own version, which is that of the kernel's module
    bool found = true;    ///< libcuda.so.1 is mapped
    image::JitSwitches switches;
    bool jit_cache_off = false;       ///< CUDA_CACHE_DISABLE=1
    image::Version reads;             ///< the newest PTX that it takes, where that was said
    image::Version runtime;           ///< that asks for it, and failed
    bool asked_by_container = false;  ///< `runtime` is what an image of a container demands of it
    bool operator==(const Driver&) const = default;
  } driver;

  struct Images {
    std::vector<ImageFact> list;
    ImageScope scope = ImageScope::none;
    std::shared_ptr<const ImageSource> source;  ///< null where only `list` is known
    std::string damage;                         ///< what the parser found wrong with the image
    std::vector<std::string> kernels;           ///< mangled, of all images, where every image was read
    std::vector<std::string> alike;             ///< those of them that have the name asked for in the source
    std::vector<image::Candidate> have;         ///< what is built again has all of these
    std::vector<std::string> holders;           ///< those that do hold the failing kernel, by name
    std::optional<image::Candidate> taken;      ///< the one without the kernel's body that the driver takes
    bool guarded = false;     ///< every module is served, and the image taken lacks the kernel
    image::Version toolkit;   ///< that built the file
    std::string toolkit_how;  ///< how that is known: "its cubins say so"
    image::Version ptx;       ///< ISA version of the PTX that was refused, where that was said
    bool operator==(const Images&) const = default;
  } images;

  struct Call {
    std::vector<int> codes;     ///< of every layer, innermost first; empty for a gap that nothing ran into
    std::optional<int> code;    ///< of them, that of the finding
    std::string stage;          ///< load, lookup, query, launch, init, other; empty as above
    bool by_name = false;       ///< the program itself asked for the kernel, by a name that it holds as text
    bool for_variable = false;  ///< it looks a variable of the device code up
    bool probing = false;       ///< a library known to try and go on made it
    bool went_on = false;       ///< no launch of this module failed, and the process lived on
    bool first = false;         ///< nothing had failed in the process before
    bool kept_by_runtime = false;  ///< libcudart.so made it, and is not known to have failed by it
    bool of_collection = false;  ///< its file has a module for each GPU: many were refused, and others loaded
    std::optional<CompilerFacts> compiler;  ///< then `codes` is empty: its codes are not CUDA's
    std::string caller;                     ///< file that reports what `software` left behind
    std::string package;                    ///< the Python package whose code called the compiler, for pip
    std::string extension;                  ///< the package of the frame that called, beside PyTorch
    std::string message;  ///< the row of the table messages that decides, where a log has it
    std::map<std::string, std::string> said;  ///< what that message and the lines beside it name, by the word
                                              ///< that fixes ask for

    bool has(int of) const { return std::ranges::find(codes, of) != codes.end(); }
    bool has_any(unsigned traits) const {
      return std::ranges::any_of(codes, [traits](int each) { return code_has(each, traits); });
    }
    bool operator==(const Call&) const = default;
  } call;

  struct File {
    std::string path;  ///< empty for a loose image
    Origin origin = Origin::program;
    std::string build_folder;         ///< of Origin::cmake
    std::string archive;              ///< what the file is a member of
    std::string_view linked_library;  ///< whose code lacks the architecture, of NVIDIA's static ones
    bool loose = false;               ///< the image came from memory, not from a mapped file
    bool bare = false;                ///< a fatbin, cubin or PTX by itself, in a file or in memory
    bool shared_library = false;
    bool relocatable = false;  ///< linked from relocatable device code
    bool links_torch = false;  ///< is built by PyTorch's extension builder, as far as can be told
    std::string cache;         ///< whose cache holds the image
    std::string cache_entry;   ///< what is to go
    std::string removable;  ///< what of the caller's own caches may be deleted (commands.h): that entry, or
                            ///< the extension
    std::vector<std::string> unread;  ///< files that were not read
    std::string need;                 ///< the architecture that was asked about for those
    bool operator==(const File&) const = default;
  } file;

  struct Package {
    data::ProjectName name;  ///< as its manager calls it
    std::string version;
    std::string manager;      ///< pip, conda, dpkg, rpm; empty = pip where it is Python's, else not known
    std::string environment;  ///< prefix of the conda or virtual environment that the file lies in
    std::string channel;      ///< of a conda package
    std::string source;       ///< what pip built it from here (owner/direct_url.h); empty: it came built
    std::string variant;      ///< for which CUDA it is: cu128; empty where its version or name tells
    std::string platform;     ///< "linux x86_64"; empty = by the GPU
    std::string software;     ///< what failed, where no file is known: "torch", "cuDNN"
    std::string project;      ///< the program at work, by its source, its prompt or its prefix in a log
    std::string around;       ///< what was started or installed as a whole and has `software` within
    bool works = false;    ///< `software` has code for the GPU: by a table, its own list, or the log's word
    std::string solution;  ///< the release that ended the failure, by the log; its package
    std::string solution_of;
    image::ComputeCapability minimum;  ///< that `software` says it asks for; {0, 0}: nothing
    std::string beside;                ///< packages that go with PyTorch's release, and are listed with it
    bool vendored = false;             ///< `software` is carried by others, and nobody installs it by itself
    std::string torch_build;           ///< "1.10.0+cu113", where a log names both
    bool from_source = false;          ///< the user built `software` from its source
    bool released = false;             ///< a finished program: its user builds nothing
    bool builds = true;                ///< false where nothing shows that the user built it
    std::string build_system;          ///< make, cmake, meson, bazel, cargo or spack, where a log tells
    std::string arch_variable;         ///< of that build, for its architectures
    bool arch_dots = false;            ///< with values such as 8.6
    bool arch_flags = false;           ///< with options of nvcc as its value
    std::string build_command;         ///< as a log shows it, with architectures in it
    bool operator==(const Package&) const = default;
  } package;

  struct Process {
    std::string program;  ///< the command line, quoted for the shell
    owner::PythonEnvironment python_env;
    bool python = false;             ///< it runs Python
    std::string python_version;      ///< "3.10"
    bool torch = false;              ///< with PyTorch in it
    std::string interpreter;         ///< what starts Python there, where a log names one of its own
    bool windows = false;            ///< its commands are to be those of Windows
    std::string container_image;     ///< by name, where a log has it
    std::string service;             ///< of docker compose, whose line failed
    std::vector<std::string> shows;  ///< what else a log shows: wsl, container, windows, jetson, restarted,
                                     ///< launched
    std::map<std::string, std::string> installed;  ///< packages that pip says are there, with their releases
    std::vector<core::Assumed> unsaid;  ///< what a log does not say; of a report or a file: nothing
    bool ranked = false;                ///< a launcher started it as one of several
    bool parent_initialized = false;    ///< it was forked from one that had initialized CUDA
    bool foreign = false;  ///< the report is another user's: no command may hold a name that it gives
    std::optional<MissingLibrary> missing;
    std::optional<LibraryConflict> conflict;
    bool operator==(const Process&) const = default;
  } process;

  bool operator==(const Facts&) const = default;
};

}  // namespace kshim::diagnose
