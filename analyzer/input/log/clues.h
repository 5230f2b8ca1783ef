// SPDX-License-Identifier: Apache-2.0
// What was read from a log or a message: the lines that tell of a failure, and the facts beside them.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/data/tables.h"

namespace kshim::input {

// How a log goes on after a failing line: whether the program did without what failed, and what it died of
// in the end.

struct LogMatch;

/// The last line of a Python traceback that names nothing of CUDA's.
struct Death {
  std::uint64_t line = 0;
  std::string quote;
  std::vector<core::Place> frames;  ///< outermost first
};

struct Course {
  std::vector<std::uint64_t> goes_on;  ///< lines that say that the program does without something
  std::uint64_t last_works = 0;        ///< 0 = none
  std::string last_works_quote;
  std::uint64_t last_finished = 0;
  std::string last_finished_quote;
  std::vector<std::uint64_t> on_cpu;  ///< lines that say that the program runs without the GPU
  std::vector<Death> deaths;
  std::uint64_t last_error = 0;  ///< the last line that tells of an error of any kind; 0 = none
  std::string last_error_quote;
};

/// Why the failing line was survived, as a sentence; empty where nothing says so.
std::string survived(const Course& course, const LogMatch& hit, core::Cause cause);
/// The line that says that the program goes on without the GPU after the failing one, or with it; 0 = none.
std::uint64_t on_cpu_after(const Course& course, const LogMatch& hit);
/// What ended the program after a line that it had survived; nullptr for none.
const Death* death_after(const Course& course, const LogMatch& hit);

/// A line that tells of a failure.
struct LogMatch {
  std::uint64_t line = 0;  ///< number in the log, from 1
  std::size_t column = 0;  ///< where in the line
  std::string quote;       ///< the line, cleaned, cut
  core::TextPart part;     ///< what matched, in the quote
  std::string id;    ///< of the row of the table messages; empty for CUDA's own names, messages and numbers
  std::string who;   ///< the library or program that prints it; empty as above
  int code = 0;      ///< CUDA's of today, 0 = none
  int old_code = 0;  ///< as it stood there, where that is a number of before CUDA 10.1
  std::string as_written;  ///< the name as it stood there, where the headers have another
  core::Cause cause = core::Cause::unknown;
  double confidence = 0;  ///< 0: by the code alone
  std::string tells;
  bool brief = false;         ///< words that count only in what a person typed
  bool hint = false;          ///< a warning: the failure itself may come later
  bool needs_cuda = false;    ///< nothing of CUDA's stands in its line: it counts where another line has it
  bool vague = false;         ///< counts where nothing else tells of a failure
  bool goes_on = false;       ///< the line says that the program does without what failed
  bool thrown = false;        ///< an exception, or the end of the program
  bool calls_native = false;  ///< the source line of the innermost frame calls a compiled module
  std::vector<std::string> software;  ///< packages that the line names (the table software)
  std::string project;  ///< whose source file or assertion the line names (project_in); empty: no one's
  std::string speaker;  ///< the program that the line's prefix names
  std::vector<core::Place> frames;            ///< of the Python traceback that ends here, outermost first
  std::map<std::string, std::string> groups;  ///< named groups of the row
};

/// A named group of the row; empty where it took no part.
inline std::string group(const std::map<std::string, std::string>& groups, const char* key) {
  const auto found = groups.find(key);
  return found == groups.end() ? std::string() : found->second;
}
inline std::string group(const LogMatch& hit, const char* key) { return group(hit.groups, key); }

/// A failure outside CUDA.
struct OtherFailure {
  std::uint64_t line = 0;
  std::string quote;
  core::TextPart part;
  const data::NotCudaRow* row = nullptr;
  std::string file;                   ///< that the line names
  std::vector<std::string> software;  ///< packages that the line names
};

/// What a sentence says of a GPU: "works on my A100 but not on the V100".
enum class DeviceRole { none, works, fails };

struct DeviceMention {
  image::ComputeCapability cc;
  std::string name;        ///< marketing name, where one stood there
  std::uint64_t line = 0;  ///< the last before anything failed, else the first
  bool by_name = false;    ///< from the name alone
  DeviceRole role = DeviceRole::none;
  std::vector<int> ordinals;  ///< "GPU 1:"
};

/// A line that names a GPU by its number alone: "current device: 1", "cuda:1".
struct OrdinalMention {
  std::uint64_t line = 0;
  int ordinal = 0;
};

/// One list of images: of a file, or of what a program says of itself.
struct ImageList {
  std::string owner;       ///< file or program; empty = not said
  bool by_itself = false;  ///< what a program says of itself, which need not be the file that failed
  std::vector<image::Candidate> images;
  std::uint64_t line = 0;
};

struct PackageMention {
  std::string name;     ///< as the table software spells it
  std::string written;  ///< as the log does: "cupy-cuda12x"
  std::string version;  ///< "2.9.1"; empty where none stood there
  std::string variant;  ///< "cu128", of a local version
  std::uint64_t line = 0;
  bool from_source = false;  ///< the log calls it a build from source
  bool past = false;         ///< of the release that worked, or that something was made with
  bool of_conda = false;     ///< a row of conda's list, or of its environment file
  bool printed = false;      ///< with its variant or the word "version": what is there, by a program

  /// The name by which pip or a table of ours finds it.
  std::string known_as() const;
};

/// A line's word for the program at work: the command that was typed, or the folder where.
struct ProgramMention {
  data::ClueKind by = data::ClueKind::command;
  std::string name;
  std::uint64_t line = 0;
};

/// "Unsloth needs CUDA capability >= 7.0": what a project says that it asks for.
struct PackageMinimum {
  image::ComputeCapability cc;
  std::vector<std::string> software;  ///< packages that the line names
  bool read = false;                  ///< whether the line is read to its end
};

/// Bytes of a GPU, as an allocator counts them that found none left; 0 = not said.
struct GpuMemory {
  std::uint64_t asked = 0;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t own = 0;       ///< of the process
  std::uint64_t others = 0;    ///< of other processes
  std::uint64_t reserved = 0;  ///< of the process, and in no use
  bool known() const { return total != 0; }
  /// Whether what was asked for was free, and not only by a hair: an allocator takes whole blocks.
  bool had_room() const {
    constexpr std::uint64_t kBlocks = std::uint64_t{256} << 20;
    return asked != 0 && free >= asked + std::min(kBlocks, total / 16);
  }
};

struct LogFacts {
  std::vector<LogMatch> hits;
  std::vector<OtherFailure> others;
  Course course;
  std::vector<DeviceMention> devices;
  std::vector<OrdinalMention> ordinals;
  image::Version driver;      ///< newest CUDA version it serves; unknown = {0, 0}
  std::string kernel_module;  ///< "535.288.01"
  image::Version toolkit;
  image::Version ptx;               ///< that a line says the program's PTX has
  image::Version compiler_package;  ///< CUDA of conda's cuda-nvcc, which need not be that of the libraries
  bool toolkit_assumed = false;     ///< by an option: no line says it
  std::vector<ImageList> lists;
  std::vector<PackageMention> packages;
  std::vector<ProgramMention> programs;
  std::set<std::string, std::less<>> works;  ///< packages that the log says or shows to work on the GPU
  std::optional<PackageMention> solution;    ///< the release that ended the failure, by a sentence of the log
  std::vector<PackageMinimum> minimums;
  std::map<std::string, std::string> env;
  std::vector<std::string> files;  ///< libraries and programs named in failing lines
  std::string container_image;     ///< "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
  bool run_time_compiler = false;  ///< compiles for the GPU that is there: Triton, XLA, CuPy ...
  std::string compiler;            ///< which
  std::string python_release;      ///< "3.10", the first that is named
  /// Its commands are to be those of Windows.
  bool of_windows() const { return has("windows") && !has("posix"); }
  std::set<std::string, std::less<>> shows;  ///< words of rows of the table clues: "python", "wsl", "batch"
  bool has(std::string_view word) const { return shows.contains(word); }
  std::map<std::string, std::string, std::less<>> said;  ///< words for fixes, by rows of the table clues
  std::map<std::string, std::string> libraries;  ///< NVIDIA's that are listed as there: cudnn, and its 9
  std::map<std::string, std::string> there;      ///< files that are shown to be there, and their folders
  GpuMemory memory;
  std::map<std::string, std::string> installed;  ///< by pip's word: "Requirement already satisfied"
  std::string own_python;                        ///< of Windows: what starts the Python that a program brings
  std::vector<std::string> cuda_wheels;          ///< that are listed: nvidia-nccl-cu12
  std::vector<std::string> driver_releases;      ///< of files and packages: 570.124.06
  bool rocm = false;                             ///< AMD's HIP is at work
  std::string build_system;                      ///< make, cmake, meson, bazel, cargo, spack
  /// The variable by which the project's build is told its architectures, where a command line has it.
  std::string arch_variable;
  bool arch_dots = false;     ///< with values such as 8.6
  bool arch_flags = false;    ///< with options of nvcc as its value
  std::string build_command;  ///< that somebody typed, with architectures in it
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::uint64_t cut_lines = 0;  ///< longer than what is looked at
};

/// Those that a failing line may be about: the one of its number, else one that is said to fail, and none
/// that is said to work.
std::vector<const DeviceMention*> suspected_devices(const LogFacts& clues, std::uint64_t line);

/// Whose source a line names: "solver" of D:\a\1\solver\src\gpu\launch.cpp, "dock" of glibc's
/// "dock: ./cuda/kernels.cu:147: ...: Assertion". Empty where the path does not tell.
std::string project_in(const std::string& line);

/// "ComfyUI" of ~/ComfyUI/comfy/ops.py and /srv/ComfyUI: the project's folder of a path of a user. Empty
/// where it has none: /srv/trial/venv/... was made for an environment.
std::string project_of_path(std::string path);
/// The name of a program by its file, empty for tools that build, install and look: "hashmine" of ./hashmine.
std::string program_of_word(std::string_view word);

/// What the failing line is of, where no package is known: the project of its source file or its speaker, the
/// package of the innermost frame, the command that was typed, the image of the container, the folder.
std::string program_at_work(const LogFacts& clues, const LogMatch& hit);
/// What was started or installed as a whole, and has the package that failed within: the speaker of the line,
/// an image of its own, a user's project. Empty where nothing names it.
std::string program_around(const LogFacts& clues, const LogMatch& hit);
/// Whether an image brings a system, a toolkit or a framework, and a user's program is installed on it.
bool is_base_image(std::string_view image);

/// The package that goes by this name alone, as the table software spells it; empty: none.
std::string software_of(std::string_view name);
/// Whether each of its releases is for one of PyTorch, and is on PyTorch's index (the table software).
bool goes_with_torch(std::string_view package);
/// Whether it starts the kernels that its user's code asks for (the table software).
bool is_framework(std::string_view package);
/// Whether other projects carry the source of the package (the table software).
bool is_vendored(std::string_view package);

const PackageMention* find_package(const LogFacts& clues, std::string_view name);
/// The package that failed, as far as the log tells: that of the failing line, of the innermost frame of an
/// installed package, the only one, else PyTorch; nullptr where none is named.
/// That of the innermost frame, the frames of what only passes calls on left out, else the only other one;
/// empty where there is none, or where it is PyTorch.
std::string package_that_called(const LogFacts& clues, const LogMatch& hit);
const PackageMention* package_that_failed(const LogFacts& clues, const LogMatch* hit);
/// The one that is left where PyTorch works: that of the frames, else the only other one; nullptr: several.
const PackageMention* package_beside(const LogFacts& clues, const LogMatch* hit, std::string_view working);
/// Whether the package of the innermost frame was compiled, by the line of source that calls into it.
bool is_failed_by_frame(const LogFacts& clues, const LogMatch& hit);
/// What the project says that the GPU has to have at least; {0, 0} where it says nothing.
image::ComputeCapability minimum_of(const LogFacts& clues, std::string_view package);

}  // namespace kshim::input
