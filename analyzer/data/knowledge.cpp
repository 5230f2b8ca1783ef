// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge.h"

#include <stdexcept>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::data {
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
  const std::string folder = fmt::format("{}/", distribution);
  return path.starts_with(folder) || contains(path, "/" + folder);
}

}  // namespace

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
  if (const auto* row = first_row(recipes(), [&](const RecipeRow& each) { return each.id == id; }))
    return *row;
  throw std::runtime_error(fmt::format("the tables in use have no recipe `{}`", id));
}

const GpuRow* find_gpu(ComputeCapability cc) {
  return first_row(gpus(), [&](const GpuRow& row) { return row.cc == cc; });
}

const ToolkitRow* find_toolkit(Version wanted) {
  return first_row(toolkits(), [&](const ToolkitRow& row) { return row.version == wanted; });
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
  return last_row(toolkits(), [&](const ToolkitRow& row) { return row.version <= wanted; });
}

bool builds_for(const ToolkitRow& toolkit, image::Arch arch) { return contains(toolkit.targets, arch); }

bool builds_tiles_for(const ToolkitRow& toolkit, image::Arch arch) {
  return contains(toolkit.tile_targets, arch);
}

const ToolkitRow* first_toolkit_for(image::Arch arch) {
  return first_row(toolkits(), [&](const ToolkitRow& row) { return builds_for(row, arch); });
}

const ToolkitRow* last_toolkit_for(image::Arch arch) {
  return last_row(toolkits(), [&](const ToolkitRow& row) { return builds_for(row, arch); });
}

const ToolkitRow* toolkit_of_isa(Version isa) {
  return last_row(toolkits(), [&](const ToolkitRow& row) { return row.isa == isa; });
}

Version last_driver_cuda(const GpuRow& gpu) {
  if (gpu.last_branch == 0) return {};
  const auto* row = last_row(toolkits(), [&](const ToolkitRow& each) {
    return !each.driver.empty() && branch_of(each.driver) <= gpu.last_branch;
  });
  return row == nullptr ? Version{} : row->version;
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
  return std::ranges::any_of(stateless_libraries(), [&](const StatelessLibraryRow& row) {
    // The driver's own name is short: libcuda.so alone, and not libcudart.so.
    return row.prefix == "cuda" ? family == row.prefix : family.starts_with(row.prefix);
  });
}

const ProbingLibraryRow* find_probing_library(std::string_view path) {
  const std::string_view name = basename_of(path);
  // cublas64_12.dll is what libcublas.so.12 is elsewhere.
  const std::size_t lib = name.ends_with(".dll") ? 3 : 0;
  return first_row(probing_libraries(),
                   [&](const ProbingLibraryRow& row) { return name.starts_with(row.prefix.substr(lib)); });
}

const VendorLibraryRow* find_vendor_library(std::string_view path) {
  std::string_view name = basename_of(path);
  if (name.starts_with("lib")) name.remove_prefix(3);
  // cublas64_12.dll and libcublas.so are NVIDIA's, cublas_test is not.
  const auto library = [](std::string_view ending) {
    return contains(ending, ".so") || ending.ends_with(".a") || ending.ends_with(".dll") ||
           ending.ends_with(".lib");
  };
  if (!library(name)) return nullptr;
  return first_row(vendor_libraries(),
                   [&](const VendorLibraryRow& row) { return name.starts_with(row.prefix); });
}

const BuildRow* find_build(std::string_view package, std::string_view path) {
  return first_row(builds(), [&](const BuildRow& row) {
    return (!row.file.empty() && basename_of(path).starts_with(row.file)) ||
           is_variant_of(package, row.distribution) || lies_in(path, row.distribution);
  });
}

const InstallerRow* find_installer(std::string_view distribution, std::string_view manager,
                                   std::string_view release) {
  return first_row(installers(), [&](const InstallerRow& row) {
    return row.distribution == distribution && row.manager == manager &&
           (release.empty() || is_within(release, row.first, row.last));
  });
}

}  // namespace kshim::data
