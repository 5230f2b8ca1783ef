// SPDX-License-Identifier: Apache-2.0
#include "analyzer/knowledge/knowledge.h"

#include <algorithm>
#include <charconv>

namespace kshim::analysis {
namespace {

using image::ComputeCapability;
using image::Version;

constexpr Version version(unsigned major, unsigned minor) {
  return {static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
}
constexpr ComputeCapability capability(unsigned major, unsigned minor) {
  return {static_cast<std::uint16_t>(major), static_cast<std::uint16_t>(minor)};
}

constexpr SourceRow kSources[] = {
#define KSHIM_SOURCE(id, what, date) {#id, what, date},
#include "analyzer/knowledge/sources.def"
#undef KSHIM_SOURCE
};
constexpr ToolkitRow kToolkits[] = {
#define KSHIM_TOOLKIT(major, minor, targets, isa_major, isa_minor, driver, minor_driver, default_arch, \
                      verified, source_ids)                                                            \
  {version(major, minor),                                                                              \
   targets,                                                                                            \
   version(isa_major, isa_minor),                                                                      \
   driver,                                                                                             \
   minor_driver,                                                                                       \
   default_arch,                                                                                       \
   verified,                                                                                           \
   source_ids},
#include "analyzer/knowledge/toolkits.def"
#undef KSHIM_TOOLKIT
};
constexpr GpuRow kGpus[] = {
#define KSHIM_GPU(major, minor, family, tegra, first_major, first_minor, last_branch, products, verified, \
                  source_ids)                                                                             \
  {capability(major, minor),                                                                              \
   family,                                                                                                \
   tegra,                                                                                                 \
   version(first_major, first_minor),                                                                     \
   last_branch,                                                                                           \
   products,                                                                                              \
   verified,                                                                                              \
   source_ids},
#include "analyzer/knowledge/gpus.def"
#undef KSHIM_GPU
};
constexpr RecipeRow kRecipes[] = {
#define KSHIM_RECIPE(id, name, list, command, caveat, source_ids) \
  {Recipe::id, name, ArchList::list, command, caveat, source_ids},
#include "analyzer/knowledge/recipes.def"
#undef KSHIM_RECIPE
};
constexpr SwitchRow kSwitches[] = {
#define KSHIM_SWITCH(variable, field, effect, source_ids) \
  {#variable, &image::JitSwitches::field, effect, source_ids},
#include "analyzer/knowledge/switches.def"
#undef KSHIM_SWITCH
};
constexpr ProbingLibraryRow kProbingLibraries[] = {
#define KSHIM_PROBING_LIBRARY(prefix, habit, source_ids) {prefix, habit, source_ids},
#include "analyzer/knowledge/probing_libraries.def"
#undef KSHIM_PROBING_LIBRARY
};

unsigned branch_of(std::string_view driver) {
  unsigned branch = 0;
  std::from_chars(driver.data(), driver.data() + driver.size(), branch);
  return branch;
}

}  // namespace

std::span<const SourceRow> sources() { return kSources; }
std::span<const ToolkitRow> toolkits() { return kToolkits; }
std::span<const GpuRow> gpus() { return kGpus; }
std::span<const RecipeRow> recipes() { return kRecipes; }
std::span<const SwitchRow> switches() { return kSwitches; }
std::span<const ProbingLibraryRow> probing_libraries() { return kProbingLibraries; }

const RecipeRow& row_of(Recipe recipe) { return kRecipes[static_cast<std::size_t>(recipe)]; }

const GpuRow* find_gpu(ComputeCapability cc) {
  for (const GpuRow& row : kGpus) {
    if (row.cc == cc) return &row;
  }
  return nullptr;
}

const ToolkitRow* find_toolkit(Version wanted) {
  for (const ToolkitRow& row : kToolkits) {
    if (row.version == wanted) return &row;
  }
  return nullptr;
}

const ToolkitRow* toolkit_at_most(Version wanted) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : kToolkits) {
    if (row.version <= wanted) found = &row;
  }
  return found;
}

bool builds_for(const ToolkitRow& toolkit, image::Arch arch) {
  std::string_view rest = toolkit.targets;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto target = image::parse_arch(word);
    if (target && *target == arch) return true;
  }
  return false;
}

const ToolkitRow* first_toolkit_for(image::Arch arch) {
  for (const ToolkitRow& row : kToolkits) {
    if (builds_for(row, arch)) return &row;
  }
  return nullptr;
}

const ToolkitRow* last_toolkit_for(image::Arch arch) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : kToolkits) {
    if (builds_for(row, arch)) found = &row;
  }
  return found;
}

const ToolkitRow* toolkit_of_isa(Version isa) {
  const ToolkitRow* found = nullptr;
  for (const ToolkitRow& row : kToolkits) {
    if (row.isa == isa) found = &row;
  }
  return found;
}

Version last_driver_cuda(const GpuRow& gpu) {
  if (gpu.last_branch == 0) return {};
  Version found;
  for (const ToolkitRow& row : kToolkits) {
    if (branch_of(row.driver) <= gpu.last_branch) found = row.version;
  }
  return found;
}

const ProbingLibraryRow* find_probing_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const ProbingLibraryRow& row : kProbingLibraries) {
    if (name.starts_with(row.prefix)) return &row;
  }
  return nullptr;
}

}  // namespace kshim::analysis
