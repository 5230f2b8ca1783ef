// SPDX-License-Identifier: Apache-2.0
// The parts of a machine that kshim doctor looks at, each found by itself.
#pragma once
#include <chrono>

#include "analyzer/input/machine/facts.h"
#include "analyzer/input/machine/machine.h"

namespace kshim::doctor {

Place look_at_place(const Machine& machine);
/// PRETTY_NAME of os-release(5): "Debian GNU/Linux 12 (bookworm)".
std::string pretty_name(std::string_view os_release);
System look_at_system(const Machine& machine, const Loader& loader);
/// By NVML where the machine is this one and has it, else by what the kernel module shows in /proc.
void find_gpus(const Machine& machine, const Loader& loader, Facts& facts);
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

}  // namespace kshim::doctor
