// SPDX-License-Identifier: Apache-2.0
// What kshim doctor found on a machine, before anybody judges it.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/input/machine/loader.h"
#include "kshim/image/arch.h"
#include "kshim/image/select.h"

namespace kshim::doctor {

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
  std::string asked;          ///< who told: "NVML", "the table of toolkits"
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

/// The file that would run in the end, and what is between it and its name.
struct Program {
  std::string path;
  std::vector<std::string> chain;  ///< interpreters of scripts, outermost first
  std::string blind;               ///< why LD_PRELOAD has no effect there; empty when it has
  bool found = false;
  bool elf = false;
  bool library = false;              ///< not a program: it lives in those that load it
  std::vector<Library> libraries;    ///< CUDA's, of what it is linked to
  std::vector<std::string> missing;  ///< "libfoo.so.1, for /opt/x/libbar.so"
  std::vector<std::string> dlmopen;  ///< files that can load into namespaces of their own
  std::string deepbind;              ///< why what it loads may be bound past the shim; empty else
};

struct Place {
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
};

struct Check {
  analysis::Severity severity = analysis::Severity::info;
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

struct GpuCoverage {
  image::ComputeCapability cc;
  std::uint64_t files = 0;  ///< with kernels
  std::uint64_t run = 0;    ///< of these, those of which something runs
  std::uint64_t jit = 0;    ///< and those of which something is compiled from PTX
};
/// What the files of an installed package are built for.
struct PackageCoverage {
  std::string package;  ///< "torch 2.9.1"; empty for files that no package lists
  std::uint64_t files = 0;
  std::vector<std::string> archs;  ///< sm_80, compute_90
  std::vector<GpuCoverage> gpus;   ///< a row each kind of GPU
};

struct Facts {
  System system;
  std::vector<PackageCoverage> coverage;
  Place place;
  std::vector<Gpu> gpus;
  Driver driver;
  std::vector<Toolkit> toolkits;
  std::vector<Python> pythons;
  std::vector<Library> libraries;  ///< what a program started here would load for each name
  std::vector<Compiler> compilers;
  std::vector<Preload> preloads;
  std::optional<Program> program;
  std::vector<Check> checks;
};

}  // namespace kshim::doctor
