// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge.h"

#include <stdexcept>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;
using image::Version;

constexpr SwitchRow kSwitches[] = {
#define KSHIM_SWITCH(variable, field, effect, source_ids) \
  {#variable, &image::JitSwitches::field, effect, source_ids},
#include "analyzer/data/switches.def"
#undef KSHIM_SWITCH
};

bool lies_in(std::string_view path, std::string_view distribution) {
  if (distribution.empty() || distribution == "torch") return false;  // a checkout, as likely as not
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = path.find('/', begin);
    if (end == std::string_view::npos) return false;
    if (path.substr(begin, end - begin) == distribution) return true;
    begin = end + 1;
  }
  return false;
}

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::span<const ToolkitRow> toolkits() { return knowledge().toolkits; }
std::span<const GpuRow> gpus() { return knowledge().gpus; }
std::span<const SwitchRow> switches() { return kSwitches; }

bool is_on(const SwitchRow& row, const std::map<std::string, std::string>& env) {
  const auto found = env.find(std::string(row.variable));
  return found != env.end() && !found->second.empty() && found->second != "0";
}

image::JitSwitches switches_in(const std::map<std::string, std::string>& env) {
  image::JitSwitches out;
  for (const SwitchRow& row : switches()) out.*row.field = is_on(row, env);
  return out;
}

unsigned branch_of(std::string_view driver) { return first_number<unsigned>(driver).value_or(0); }

const RecipeRow& find_recipe(std::string_view id) {
  for (const RecipeRow& row : recipes())
    if (row.id == id) return row;
  throw std::runtime_error(fmt::format("the tables in use have no recipe `{}`", id));
}

const GpuRow* find_gpu(ComputeCapability cc) {
  for (const GpuRow& row : gpus()) {
    if (row.cc == cc) return &row;
  }
  return nullptr;
}

const ToolkitRow* find_toolkit(Version wanted) {
  for (const ToolkitRow& row : toolkits()) {
    if (row.version == wanted) return &row;
  }
  return nullptr;
}

std::string newer_cuda_than_known(Version cuda) {
  const Version newest = toolkits().back().version;
  if (cuda <= newest) return {};
  return fmt::format(
      "CUDA {} is newer than this kshim knows ({}, with {} as the newest): it is judged as if it were as "
      "that one.",
      name(cuda), knowledge_date(), name(newest));
}

std::string newer_ptx_than_known(Version isa) {
  const Version newest = toolkits().back().isa;
  if (isa <= newest) return {};
  return fmt::format(
      "PTX {} is newer than this kshim knows ({}, with {} as the newest): which driver reads it is not "
      "known.",
      name(isa), knowledge_date(), name(newest));
}

const ToolkitRow* toolkit_at_most(Version wanted) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (row.version <= wanted) found = &row;
  }
  return found;
}

bool builds_for(const ToolkitRow& toolkit, image::Arch arch) { return contains(toolkit.targets, arch); }

bool builds_tiles_for(const ToolkitRow& toolkit, image::Arch arch) {
  return contains(toolkit.tile_targets, arch);
}

const ToolkitRow* first_toolkit_for(image::Arch arch) {
  for (const ToolkitRow& row : toolkits()) {
    if (builds_for(row, arch)) return &row;
  }
  return nullptr;
}

const ToolkitRow* last_toolkit_for(image::Arch arch) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (builds_for(row, arch)) found = &row;
  }
  return found;
}

const ToolkitRow* toolkit_of_isa(Version isa) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (row.isa == isa) found = &row;
  }
  return found;
}

Version last_driver_cuda(const GpuRow& gpu) {
  if (gpu.last_branch == 0) return {};
  Version found;
  for (const ToolkitRow& row : toolkits()) {
    if (!row.driver.empty() && branch_of(row.driver) <= gpu.last_branch) found = row.version;
  }
  return found;
}

const ToolkitRow* toolkit_of_branch(unsigned branch) {
  const ToolkitRow* found = nullptr;
  bool beyond = true;
  for (const ToolkitRow& row : toolkits()) {
    if (row.driver.empty()) continue;
    if (branch_of(row.driver) <= branch) found = &row;
    if (branch <= branch_of(row.driver)) beyond = false;
  }
  return beyond ? nullptr : found;
}

bool is_stateless_library(std::string_view family) {
  return std::any_of(knowledge().stateless_libraries.begin(), knowledge().stateless_libraries.end(),
                     [&](const StatelessLibraryRow& row) {
                       // The driver's own name is short: libcuda.so alone, and not libcudart.so.
                       return row.prefix == "cuda" ? family == row.prefix : family.starts_with(row.prefix);
                     });
}

const LibraryNeedRow* library_need(std::string_view library, std::string_view distribution,
                                   std::string_view version) {
  const auto rows = library_needs();
  const auto row = std::ranges::find_if(rows, [&](const LibraryNeedRow& known) {
    return known.library == library && known.distribution == distribution &&
           is_within(version, known.first, known.last);
  });
  return row == rows.end() ? nullptr : &*row;
}

const ProbingLibraryRow* find_probing_library(std::string_view path) {
  const std::string_view name = file_of(path);
  for (const ProbingLibraryRow& row : probing_libraries()) {
    // cublas64_12.dll is what libcublas.so.12 is elsewhere.
    std::string_view prefix = row.prefix;
    if (name.ends_with(".dll")) prefix.remove_prefix(std::string_view("lib").size());
    if (name.starts_with(prefix)) return &row;
  }
  return nullptr;
}

const VendorLibraryRow* find_vendor_library(std::string_view path) {
  std::string_view name = file_of(path);
  if (name.starts_with("lib")) name.remove_prefix(3);
  // cublas64_12.dll and libcublas.so are NVIDIA's, cublas_test is not.
  const auto library = [](std::string_view ending) {
    return contains(ending, ".so") || ending.ends_with(".a") || ending.ends_with(".dll") ||
           ending.ends_with(".lib");
  };
  if (!library(name)) return nullptr;
  for (const VendorLibraryRow& row : vendor_libraries()) {
    if (name.starts_with(row.prefix)) return &row;
  }
  return nullptr;
}

const BuildRow* find_build(std::string_view package, std::string_view path) {
  for (const BuildRow& row : builds()) {
    const bool named = !row.file.empty() && file_of(path).starts_with(row.file);
    if (named || is_variant_of(package, row.distribution) || lies_in(path, row.distribution)) return &row;
  }
  return nullptr;
}

const InstallerRow* find_installer(std::string_view distribution, std::string_view manager,
                                   std::string_view release) {
  for (const InstallerRow& row : installers()) {
    const bool asked = release.empty() || is_within(release, row.first, row.last);
    if (row.distribution == distribution && row.manager == manager && asked) return &row;
  }
  return nullptr;
}

}  // namespace kshim::analysis
