// SPDX-License-Identifier: Apache-2.0
// What is known about GPUs, toolkits and build systems, as data: each row with its sources. What was read
// from a binary always wins over what a table says.
#pragma once

#include "analyzer/data/wheels.h"

namespace kshim::data {

struct SwitchRow {
  std::string_view variable;
  bool image::JitSwitches::*field;
  std::string_view effect;
  std::string_view sources;
};

std::span<const SwitchRow> switches();
/// Whether the variable has a value that the driver takes for "on": anything but 0.
bool is_on(const SwitchRow& row, const std::map<std::string, std::string>& env);
/// Of those that are on.
std::vector<std::string> names_of(const image::JitSwitches& on);
image::JitSwitches switches_in(const std::map<std::string, std::string>& env);

/// What is said of a driver, toolkit or PTX that is newer than the tables: "CUDA 14.2 is newer than ...".
/// Empty where they have it.
std::string newer_cuda_than_known(image::Version cuda);
std::string newer_ptx_than_known(image::Version isa);

/// By its id. Throws std::runtime_error where the tables in use have no such recipe.
const RecipeRow& find_recipe(std::string_view id);
/// nullptr for a compute capability or version that no row has.
const GpuRow* find_gpu(image::ComputeCapability cc);
const ToolkitRow* find_toolkit(image::Version version);
/// The newest toolkit at or below `version`: 12.7 gives 12.6's row. nullptr when older than all rows.
const ToolkitRow* toolkit_at_most(image::Version version);
/// Whether `code=sm_<arch>` is accepted.
bool builds_for(const ToolkitRow& toolkit, image::Arch arch);
/// Whether its tileiras takes `--gpu-name sm_<arch>`.
bool builds_tiles_for(const ToolkitRow& toolkit, image::Arch arch);
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
/// Whether several copies of a family of libraries ("nvrtc-builtins") are nobody's business.
bool is_stateless_library(std::string_view family);
const ProbingLibraryRow* find_probing_library(std::string_view path);
/// Of the file's name alone: libcublas.so.12, cublas64_12.dll, libcublas_static.a.
const VendorLibraryRow* find_vendor_library(std::string_view path);
/// The library whose name begins an identifier of a kernel's mangled name: of
/// `_ZN27cutensor_internal_namespace…`, of `ncclDevKernel_AllReduce…`, of a parameter of type
/// `17cudnnTensorStruct`. Null = none. A kernel of the user's that takes a type of a library's header
/// (cuRAND's states, NPP's sizes) answers with that library too.
const VendorLibraryRow* library_of_kernel(std::string_view mangled);
/// Whether a file is a library of this name, or one of its parts: libcudnn.so.9, libcudnn_ops.so.9 and
/// cudnn64_9.dll are of cudnn, libcudnn_frontend.so is not.
bool is_library(std::string_view path, std::string_view library);
/// By the package that the file belongs to ("cupy-cuda12x", may be empty), its name, and the folders it lies
/// in.
const BuildRow* find_build(std::string_view package, std::string_view path);
/// nullptr where it is not known how. The first row of the project; with a release, the one that installs it.
const InstallerRow* find_installer(std::string_view distribution, std::string_view manager,
                                   std::string_view release = {});

}  // namespace kshim::data
