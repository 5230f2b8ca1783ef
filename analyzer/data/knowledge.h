// SPDX-License-Identifier: Apache-2.0
// What is known about GPUs, toolkits and build systems, as data: each row with its sources. The tables are
// the .def files beside this one; what was read from a binary always wins over what a table says.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "analyzer/data/wheels.h"
#include "kshim/image/arch.h"
#include "kshim/image/select.h"

namespace kshim::analysis {

struct SourceRow {
  std::string_view id;
  std::string_view what;
  std::string_view date;
};

struct ToolkitRow {
  image::Version version;
  std::string_view targets;  ///< "75 80 90 90a"
  image::Version isa;
  std::string_view driver;        ///< the oldest driver bundled with it
  std::string_view minor_driver;  ///< the oldest driver that runs its cubins
  unsigned default_arch;
  bool verified;
  std::string_view sources;
};

struct GpuRow {
  image::ComputeCapability cc;
  std::string_view family;
  bool tegra;
  image::Version first_toolkit;
  unsigned last_branch;  ///< 0 = still supported
  std::string_view products;
  bool verified;
  std::string_view sources;
};

enum class ArchList : unsigned char {
  gencode,
  values,
  cmake,
  numbers,
  torch,
  plain,
  comma,
  spaces,
  dots,
  xla,
  flash,
  kokkos,
  lowest,
  rules_cuda,
  locked,
  added
};
enum class Recipe : unsigned char {
#define KSHIM_RECIPE(id, name, list, pip, command, where, caveat, sources) id,
#include "analyzer/data/recipes.def"
#undef KSHIM_RECIPE
};
/// What of a recipe pip does.
enum class Pip : std::uint8_t { none, here, isolated, after_steps, removes };
struct RecipeRow {
  Recipe recipe;
  std::string_view name;
  ArchList list;
  Pip pip;
  std::string_view command;
  std::string_view where;  ///< to run it, as long as no folder of the source is known
  std::string_view caveat;
  std::string_view sources;
};

/// A package with a recipe of its own.
struct BuildRow {
  std::string_view distribution;
  std::string_view file;
  Recipe recipe;
  std::string_view sources;
};

/// What comes built from NVIDIA.
struct VendorLibraryRow {
  std::string_view prefix;
  bool part_of_cuda;
  std::string_view sources;
};

/// How a package manager is told which build of a project to install.
struct InstallerRow {
  std::string_view distribution;
  std::string_view manager;  ///< pip, conda
  std::string_view title;    ///< "PyTorch"
  std::string_view command;  ///< several, where lines break
  std::string_view first;    ///< releases that it can ask for
  std::string_view last;     ///< "0" = the newest too
  std::string_view caveat;
  std::string_view sources;
};

/// A cache of compiled device code.
struct CacheRow {
  std::string_view who;
  std::string_view variable;
  std::string_view fallback;
  bool whole_folder;
  std::string_view sources;
};

struct SwitchRow {
  std::string_view variable;
  bool image::JitSwitches::*field;
  std::string_view effect;
  std::string_view sources;
};

struct ProbingLibraryRow {
  std::string_view prefix;
  std::string_view habit;
  std::string_view sources;
};

std::span<const SourceRow> sources();
std::span<const ToolkitRow> toolkits();
std::span<const GpuRow> gpus();
std::span<const RecipeRow> recipes();
std::span<const SwitchRow> switches();
std::span<const ProbingLibraryRow> probing_libraries();
std::span<const BuildRow> builds();
std::span<const VendorLibraryRow> vendor_libraries();
std::span<const InstallerRow> installers();
std::span<const CacheRow> caches();

/// What is said of a driver, toolkit or PTX that is newer than the tables: "CUDA 14.2 is newer than ...". Empty where they have it.
std::string newer_cuda_than_known(image::Version cuda);
std::string newer_ptx_than_known(image::Version isa);

const RecipeRow& row_of(Recipe recipe);
/// nullptr for a compute capability or version that no row has.
const GpuRow* find_gpu(image::ComputeCapability cc);
const ToolkitRow* find_toolkit(image::Version version);
/// The newest toolkit at or below `version`: 12.7 gives 12.6's row. nullptr when older than all rows.
const ToolkitRow* toolkit_at_most(image::Version version);
/// Whether `code=sm_<arch>` is accepted.
bool builds_for(const ToolkitRow& toolkit, image::Arch arch);
/// The first and last toolkit that accept it; nullptr when none does.
const ToolkitRow* first_toolkit_for(image::Arch arch);
const ToolkitRow* last_toolkit_for(image::Arch arch);
/// The newest toolkit that emits exactly this PTX ISA, nullptr when none does.
const ToolkitRow* toolkit_of_isa(image::Version isa);
/// The newest CUDA version that the last driver branch of this GPU serves; unknown (0.0) where it is still
/// supported.
image::Version last_driver_cuda(const GpuRow& gpu);
/// "550.54.15" is of 550; 0 for what begins with no number.
unsigned branch_of(std::string_view driver);
/// The newest toolkit whose driver this branch (580) is, or comes after; nullptr for a branch before all of
/// them, and for one after the newest, which may serve a toolkit that has no row yet.
const ToolkitRow* toolkit_of_branch(unsigned branch);
const ProbingLibraryRow* find_probing_library(std::string_view path);
/// Of the file's name alone: libcublas.so.12, cublas64_12.dll, libcublas_static.a.
const VendorLibraryRow* find_vendor_library(std::string_view path);
/// By the package that the file belongs to ("cupy-cuda12x", may be empty), its name, and the folders it lies
/// in.
const BuildRow* find_build(std::string_view package, std::string_view path);
/// nullptr where it is not known how. The first row of the project; with a release, the one that installs it.
const InstallerRow* find_installer(std::string_view distribution, std::string_view manager,
                                   std::string_view release = {});

}  // namespace kshim::analysis
