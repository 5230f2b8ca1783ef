// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge.h"

#include <stdexcept>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::data {
using core::contains;

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

std::vector<std::string> names_of(const image::JitSwitches& on) {
  std::vector<std::string> out;
  for (const SwitchRow& row : switches())
    if (on.*row.field) out.emplace_back(row.variable);
  return out;
}

unsigned branch_of(std::string_view driver) { return core::first_number<unsigned>(driver).value_or(0); }

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

bool is_library(std::string_view path, std::string_view library) {
  std::string_view name = core::basename_of(path);
  // A member of a static library is of that one: libcupti_static.a!partial.o.
  if (const std::size_t mark = name.rfind('!'); mark != std::string_view::npos) {
    const std::string_view archive = name.substr(0, mark);
    const bool library_file = archive.ends_with(".a") || archive.ends_with(".lib");
    name = library_file ? archive.substr(archive.rfind('!') + 1) : name.substr(mark + 1);
  }
  const bool dll = name.ends_with(".dll");
  if (name.starts_with("lib") && !library.starts_with("lib")) name.remove_prefix(3);
  if (!name.starts_with(library)) return false;
  if (library.ends_with('-')) return true;  // "nvidia-": the driver's own, which have no list
  std::string_view rest = name.substr(library.size());
  std::size_t end = std::string_view::npos;
  for (const std::string_view ending : {".so", ".a", ".lib", ".dll"}) {
    const std::size_t at = rest.find(ending);
    if (at == std::string_view::npos) continue;
    const std::size_t behind = at + ending.size();
    if (behind == rest.size() || (ending == ".so" && rest[behind] == '.')) end = std::min(end, at);
  }
  if (end == std::string_view::npos) return false;
  rest = rest.substr(0, end);
  // auditwheel's hash: libcublas-1a2b3c4d.so.11
  const std::size_t dash = rest.rfind('-');
  if (dash != std::string_view::npos && dash + 1 < rest.size() &&
      rest.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos)
    rest = rest.substr(0, dash);
  rest = rest.substr(0, rest.find("_static"));
  if (rest.ends_with(".alt")) rest.remove_suffix(4);
  // cublas64_12.dll, libnvinfer_builder_resource_sm90.so.10
  const std::size_t last = rest.find_last_not_of(dll ? "0123456789_" : "0123456789");
  rest = rest.substr(0, last == std::string_view::npos ? 0 : last + 1);
  constexpr std::string_view kParts =
      " cublasLt cublasXt cufftw cufftXt cusolverMg nvrtc-builtins nvperf_host nvperf_target "
      "nvshmem_host nvshmem_device nvcomp_device nvcomp_gdeflate nvcomp_bitcomp cutensorMg "
      "cudnn_adv cudnn_adv_infer cudnn_adv_train cudnn_cnn cudnn_cnn_infer cudnn_cnn_train "
      "cudnn_engines_precompiled cudnn_engines_runtime_compiled cudnn_engines_tensor_ir cudnn_ext "
      "cudnn_graph "
      "cudnn_heuristic cudnn_ops cudnn_ops_infer cudnn_ops_train "
      "nppc nppial nppicc nppicom nppidei nppif nppig nppim nppist nppisu nppitc npps "
      "nvinfer_builder_resource nvinfer_builder_resource_ptx nvinfer_builder_resource_sm "
      "nvinfer_builder_resource_win nvinfer_dispatch nvinfer_lean nvinfer_plugin nvinfer_safe "
      "nvinfer_vc_plugin ";
  if (library.starts_with("lib")) library.remove_prefix(3);
  return rest.empty() || contains(kParts, fmt::format(" {}{} ", library, rest));
}

namespace {

/// What `look` says of a file, by its name: reports name the same few hundred files again and again.
template <class Row, class Look>
const Row* remembered(std::string_view path, Look&& look) {
  constexpr std::size_t kMost = 4096;
  thread_local std::unordered_map<std::string, const Row*> answers;
  const std::string_view name = core::basename_of(path);
  thread_local std::string key;
  key = name;
  if (const auto known = answers.find(key); known != answers.end()) return known->second;
  if (answers.size() == kMost) answers.clear();
  return answers.emplace(key, look(name)).first->second;
}

}  // namespace

const ProbingLibraryRow* find_probing_library(std::string_view path) {
  return remembered<ProbingLibraryRow>(path, [](std::string_view name) {
    // cublas64_12.dll is what libcublas.so.12 is elsewhere.
    const std::size_t lib = name.ends_with(".dll") ? 3 : 0;
    return first_row(probing_libraries(), [&](const ProbingLibraryRow& row) {
      return is_library(name, std::string_view(row.prefix).substr(lib));
    });
  });
}

const VendorLibraryRow* find_vendor_library(std::string_view path) {
  return remembered<VendorLibraryRow>(path, [](std::string_view name) {
    return first_row(vendor_libraries(),
                     [&](const VendorLibraryRow& row) { return is_library(name, row.prefix); });
  });
}

const VendorLibraryRow* library_of_kernel(std::string_view kernel) {
  const VendorLibraryRow* best = nullptr;
  const std::string mangled =
      core::to_lower(kernel);  // cuSPARSELt's file is libcusparseLt, its namespace cusparselt
  for (const VendorLibraryRow& row : vendor_libraries()) {
    if (best != nullptr && row.prefix.size() <= best->prefix.size()) continue;
    const std::string prefix = core::to_lower(row.prefix);
    for (std::size_t at = mangled.find(prefix); at != std::string::npos; at = mangled.find(prefix, at + 1))
      if (at == 0 || core::is_digit(mangled[at - 1])) best = &row;
  }
  return best;
}

const BuildRow* find_build(std::string_view package, std::string_view path) {
  return first_row(builds(), [&](const BuildRow& row) {
    return (!row.file.empty() && core::basename_of(path).starts_with(row.file)) ||
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
