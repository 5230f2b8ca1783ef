// SPDX-License-Identifier: Apache-2.0
// What kshim doctor finds on a machine, before anybody judges it, and how.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/input/machine/machine.h"

namespace kshim::input {

// Which file the dynamic linker of the machine would load for a name, and why that one: ld.so(8), "dlopen and
// the order of search".

struct FoundFile {
  std::string path;  ///< as the linker opens it
  std::string real;  ///< without links: libcuda.so.580.82.07
  std::string how;   ///< "LD_LIBRARY_PATH", "ld.so.cache", "RUNPATH of /opt/x/libfoo.so"
};

/// The libraries of /etc/ld.so.cache, by soname; the first of each name that a 64-bit program of this machine
/// takes. Empty for a file of another format.
std::map<std::string, std::string> read_cache(std::string_view bytes);

class Loader {
 public:
  explicit Loader(const Machine& machine);

  /// For a library that `by` (a file, or empty: a program without search paths of its own) asks for.
  std::optional<FoundFile> find(std::string_view name, const std::string& by = {},
                                const device_code::ElfFacts* asking = nullptr) const;
  /// Every folder of LD_LIBRARY_PATH and of the machine's own where there is a file of that name, as find()
  /// would come by them.
  std::vector<FoundFile> all(std::string_view name) const;
  const std::vector<std::string>& library_path() const noexcept { return library_path_; }

 private:
  std::optional<FoundFile> in_folder(std::string_view folder, std::string_view name, std::string how) const;
  bool fits(std::string_view path) const;
  std::string expand(std::string text, const std::string& by) const;

  const Machine& machine_;
  std::vector<std::string> library_path_;
  std::map<std::string, std::string> cache_;
};

// What kshim doctor found on a machine, before anybody judges it.

struct Gpu {
  std::string name;
  std::optional<image::ComputeCapability> cc;
  bool cc_by_name = false;  ///< of the name, not of the driver
  std::string uuid;
  std::string pci;  ///< "0000:65:00.0"
  bool mig = false;
  bool simulated = false;
};

struct Driver {
  std::string kernel_module;  ///< "580.82.07"
  image::Version cuda;        ///< newest CUDA that it serves; unknown where neither it nor a table tells
  image::Version isa;         ///< newest PTX that it compiles
  std::string asked;          ///< the source: "NVML", "the table of toolkits"
};

struct Toolkit {
  std::string folder;
  image::Version version;
  std::vector<std::string> known_by;  ///< "CUDA_HOME", "PATH", "/usr/local"
  bool compiler = false;              ///< has nvcc
};

/// A compiler that builds and just-in-time compilation here would call.
struct Compiler {
  std::string program;  ///< "ptxas", "c++"
  std::string path;
  std::string version;   ///< "12.8.93"; empty for the host's, which nobody runs to ask
  std::string known_by;  ///< "PATH", "TRITON_PTXAS_PATH", "triton"
};

struct PythonWheel {
  std::string name;  ///< "nvidia-cublas-cu12"
  std::string version;
};
struct Python {
  std::string interpreter;
  std::string version;  ///< "3.11.4"; of an environment without a note of it "3.11"
  std::string manager;  ///< what made the environment: "uv", "venv", "conda"; empty for a system's own
  std::vector<std::string> folders;  ///< site-packages
  std::vector<PythonWheel> wheels;   ///< CUDA's, and the frameworks that are built for one
  std::vector<std::string> library_folders;
};

struct Library {
  std::string name;  ///< "libcudart.so.13"
  FoundFile file;
  std::string version;  ///< "580.82.07", from the file behind the links; empty where its name says nothing
};

/// A library that the dynamic linker does not find.
struct Missing {
  std::string name;       ///< libfoo.so.1
  std::string needed_by;  ///< /opt/x/libbar.so
  std::string text() const { return name + ", for " + needed_by; }
};

/// The file that would run in the end, and what is between it and its name.
struct Program {
  std::string path;
  std::vector<std::string> chain;  ///< interpreters of scripts, outermost first
  std::string blind;               ///< why LD_PRELOAD has no effect there; empty when it has
  bool found = false;
  bool elf = false;
  bool library = false;            ///< not a program: it lives in those that load it
  std::vector<Library> libraries;  ///< CUDA's, of what it is linked to
  std::vector<Missing> missing;
};

struct MachineEnvironment {
  bool container = false;
  bool wsl = false;
  bool module_loaded = false;             ///< the kernel module of the driver
  std::vector<std::string> device_nodes;  ///< /dev/nvidia0 ...
  std::vector<std::string> denied;        ///< those that this user may not open
  std::vector<std::string> pci;           ///< NVIDIA's display devices, whether a driver is there or not
};

struct Preload {
  std::string path;
  std::string note;  ///< what is special about it; empty: nothing is
  bool there = true;
  bool has_dlsym = false;  ///< it stands in for the linker's, as the shim does
};

struct Check {
  core::Severity severity = core::Severity::info;
  std::string id;    ///< "stub-driver"
  std::string text;  ///< a sentence
  std::string advice;
};

/// What people ask for first in an issue.
struct System {
  std::string os;       ///< "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;   ///< "6.1.0-40-amd64"
  std::string machine;  ///< "x86_64"
  std::string glibc;    ///< "2.36"
};

/// One that is looked at while it runs.
struct RunningProcess {
  int pid = 0;
  std::string program;                 ///< "/usr/bin/python3.11", as it sees it
  std::vector<std::string> mapped;     ///< files, as it sees them
  std::vector<std::string> with_code;  ///< of those, the ones with device code
};

struct MachineFacts {
  System system;
  MachineEnvironment place;
  std::vector<Gpu> gpus;
  Driver driver;
  std::vector<Toolkit> toolkits;
  std::vector<Python> pythons;
  std::vector<Library> libraries;  ///< what a program started here would load for each name
  std::vector<Compiler> compilers;
  std::vector<Preload> preloads;
  std::optional<Program> program;
  std::optional<RunningProcess> process;
  std::vector<Check> checks;
};

// The parts of a machine that kshim doctor looks at, each found by itself.

MachineEnvironment look_at_place(const Machine& machine);
/// PRETTY_NAME of os-release(5): "Debian GNU/Linux 12 (bookworm)".
std::string pretty_name(std::string_view os_release);
System look_at_system(const Machine& machine, const Loader& loader);
/// By NVML where the machine is this one and has it, else by what the kernel module shows in /proc.
void find_gpus(const Machine& machine, const Loader& loader, MachineFacts& facts);
std::vector<Toolkit> find_toolkits(const Machine& machine);
/// nvcc, ptxas, tileiras and the host's compiler as PATH and the variables of build systems choose them, and
/// the ptxas that Triton brings.
std::vector<Compiler> find_compilers(const Machine& machine, const std::vector<Python>& pythons);
/// The interpreter of VIRTUAL_ENV, of CONDA_PREFIX and the first in PATH; where `environment` is not empty,
/// that one alone, whatever it has.
std::vector<Python> find_pythons(const Machine& machine, const std::string& environment = {});
/// The environment that a path, or a name in PATH, is an interpreter, a script or the folder of: "/opt/venv"
/// of /opt/venv/bin/python, "/usr" of python3. Empty for anything else.
std::string environment_of(const Machine& machine, const std::string& name);
std::vector<Library> find_libraries(const Machine& machine, const Loader& loader);
/// CUDA's libraries that a process has mapped, each file once.
std::vector<Library> mapped_libraries(const Machine& machine, const RunningProcess& process);
std::vector<Preload> find_preloads(const Machine& machine);
/// `name` as a shell would find it.
Program look_at_program(const Machine& machine, const Loader& loader, const std::string& name);

/// The first executable of that name in PATH; empty where there is none.
std::string in_path(const Machine& machine, std::string_view name);
/// "580.82.07" of libcuda.so.580.82.07; empty where the name holds no more than the soname does.
std::string version_in_name(std::string_view path);
/// Whether a name is that of one of CUDA's libraries: libcudart.so.13, libcublas-1a2b3c.so.12.
bool is_cuda_library(std::string_view name);

// Questions to the driver by libnvidia-ml.so.1, which comes with it.
struct NvmlAnswers {
  bool answered = false;
  std::string error;  ///< why not, where the library is there: "answers: Driver/library version mismatch"
  std::string driver;
  image::Version cuda;
  std::vector<Gpu> gpus;
};
/// Loads the library at `path` into a process of its own: one that does not belong to the kernel module may
/// crash, and one that waits for a dead GPU never answers. With many GPUs, and nobody to keep them awake, the
/// first answer takes 10 s and more.
NvmlAnswers ask_nvml(const std::string& path, std::chrono::seconds patience = std::chrono::seconds(30));

// The compilers of CUDA that a machine has, as programs: ptxas, tileiras, nvcc, cicc, nvlink.
struct CompilerProgram {
  std::string path;  ///< without links
  image::Version version;
};
/// Programs of that name, and ptxas-blackwell beside ptxas: of PATH, of the toolkits, of the Python
/// environments at hand and of `packages` (a site-packages folder; may be empty). Only those whose file tells
/// their version; each once.
std::vector<CompilerProgram> find_compilers(const Machine& machine, std::string_view name,
                                            const std::string& packages);

}  // namespace kshim::input
