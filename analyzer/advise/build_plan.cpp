// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/build_plan.h"

#include "analyzer/core/text.h"
#include "analyzer/data/reach.h"
#include "kshim/image/compute_capability.h"

namespace kshim::advise {
namespace {

using image::Arch;
using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;
using image::Version;

// PTX of a Jetson's target would compile for a desktop GPU too, but is nobody's choice for one.
bool odd_ptx(ImageKind kind, ComputeCapability target, ComputeCapability device) {
  return kind == ImageKind::ptx && target != device && image::is_tegra(target);
}

std::optional<Arch> best_target(const ToolkitRow& toolkit, ImageKind kind, ComputeCapability device,
                                Version driver) {
  std::optional<Arch> best;
  for (const Arch arch : toolkit.targets) {
    if (arch.suffix != Suffix::none || odd_ptx(kind, arch.cc, device)) continue;
    if (arch.cc == ComputeCapability{2, 1}) continue;  // there is no compute_21, and sm_20 runs on it
    if (!image::judge({kind, arch, toolkit.isa}, {device, driver, {}}).fits) continue;
    if (!best || *best < arch) best = arch;
  }
  return best;
}

PlannedArch& at(std::vector<PlannedArch>& archs, Arch arch) {
  auto found =
      std::find_if(archs.begin(), archs.end(), [&](const PlannedArch& row) { return row.arch == arch; });
  if (found == archs.end()) found = archs.insert(archs.end(), {arch, false, false, false});
  return *found;
}

bool builds_all(const ToolkitRow& toolkit, const std::vector<Candidate>& have) {
  return std::all_of(have.begin(), have.end(), [&](const Candidate& image) {
    return image.kind == ImageKind::ltoir || builds_for(toolkit, image.arch);
  });
}

// nvcc refuses sm_120 beside sm_120f ("The same GPU code generated for non family-specific and
// family-specific GPU arch", measured with 13.0; PTX of one beside machine code of the other is accepted).
// The f image serves the same GPUs.
void settle_families(std::vector<PlannedArch>& archs) {
  for (PlannedArch& row : archs) {
    if (row.arch.suffix != Suffix::none || !row.sass) continue;
    PlannedArch* family = family_sibling(archs, row);
    if (family == nullptr || !family->sass) continue;
    row.sass = false;
    family->added = family->added || row.added;
    row.added = false;
  }
  archs.erase(std::remove_if(archs.begin(), archs.end(),
                             [](const PlannedArch& row) { return !row.sass && !row.ptx; }),
              archs.end());
}

bool emits_code_for(const ToolkitRow& toolkit, ComputeCapability device) {
  return best_target(toolkit, ImageKind::cubin, device, {}).has_value();
}

}  // namespace

std::optional<BuildPlan> plan_build(const std::vector<Candidate>& have, ComputeCapability device,
                                    const ToolkitRow& toolkit, Version driver,
                                    const std::vector<ComputeCapability>& also) {
  BuildPlan plan;
  plan.toolkit = &toolkit;
  for (const Candidate& image : have) {
    if (image.kind == ImageKind::ltoir) continue;
    if (!builds_for(toolkit, image.arch)) {
      plan.dropped.push_back(image);
      continue;
    }
    PlannedArch& row = at(plan.archs, image.arch);
    (image.kind == ImageKind::cubin ? row.sass : row.ptx) = true;
  }
  auto target = best_target(toolkit, ImageKind::cubin, device, driver);
  if (!target) {
    target = best_target(toolkit, ImageKind::ptx, device, driver);
    plan.by_ptx = true;
  }
  if (!target) return std::nullopt;
  PlannedArch& row = at(plan.archs, *target);
  (plan.by_ptx ? row.ptx : row.sass) = true;
  row.added = true;
  for (const ComputeCapability each : also) {
    const auto own = best_target(toolkit, ImageKind::cubin, each, driver);
    if (!own) continue;
    PlannedArch& other = at(plan.archs, *own);
    other.sass = other.added = true;
  }
  add_newest_ptx(plan.archs);
  settle_families(plan.archs);
  std::sort(plan.archs.begin(), plan.archs.end(),
            [](const PlannedArch& a, const PlannedArch& b) { return a.arch < b.arch; });
  return plan;
}

const ToolkitRow* recommend_toolkit(ComputeCapability device, std::optional<Version> near, Version driver,
                                    const std::vector<Candidate>& have) {
  const ToolkitRow* oldest = nullptr;
  const ToolkitRow* newest = nullptr;
  const ToolkitRow* complete = nullptr;
  const ToolkitRow* nearest = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (!emits_code_for(row, device) || !can_ever_run(device, row.version)) continue;
    if (oldest == nullptr) oldest = &row;
    if (driver.known() && row.version > driver) continue;
    newest = &row;
    if (builds_all(row, have)) complete = &row;
    if (near && row.version.major == near->major) nearest = &row;
  }
  if (nearest != nullptr) return nearest;
  if (complete != nullptr) return complete;
  return newest != nullptr ? newest : oldest;
}

const ToolkitRow* last_with_code_for(ComputeCapability device) {
  const auto rows = toolkits();
  const auto last = std::find_if(rows.rbegin(), rows.rend(),
                                 [&](const ToolkitRow& row) { return emits_code_for(row, device); });
  return last == rows.rend() ? nullptr : &*last;
}

std::string_view pip_install(Pip how) {
  return how == Pip::here ? "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps"
                          : "pip install --no-cache-dir --force-reinstall --no-deps";
}

Command expand_recipe(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words,
                      std::string_view pattern) {
  const bool other = !words.toolkit.empty();
  Command out =
      command_of(pattern.empty() ? recipe.command : pattern,
                 {{"pip", std::string(pip_install(recipe.pip))},
                  {"nvcc", words.nvcc},
                  {"mode", words.mode},
                  {"toolkit", other ? words.toolkit : "/usr/local/cuda"},
                  {"home", other ? fmt::format("CUDA_HOME={} ", words.toolkit) : ""},
                  {"path", other ? fmt::format("PATH={}/bin:\"$PATH\" ", words.toolkit) : ""},
                  {"compiler", other ? fmt::format(" --fresh -DCMAKE_CUDA_COMPILER={}", words.nvcc) : ""},
                  {"cuda", image::to_name(plan.toolkit->version).c_str()},
                  {"list", arch_list(plan, recipe.list)},
                  {"newest", newest_plain(plan)},
                  {"output", words.output},
                  {"build", words.build},
                  {"package", words.package},
                  {"tag", words.tag},
                  {"source", words.source},
                  {"folder", words.folder},
                  {"variable", words.variable},
                  {"program", words.program}},
                 nullptr, Holes::keep);
  out.names_program = asks_for(pattern.empty() ? recipe.command : pattern, "program");
  // It lies where Linux has it.
  if (other || contains(recipe.command, "{toolkit}")) out.needs |= need::system | need::linux;
  return out;
}

namespace {

std::string digits(Arch arch) {
  constexpr std::array<std::string_view, 3> kSuffix = {"", "a", "f"};
  return fmt::format("{}{}", arch.cc.number(), kSuffix[static_cast<std::size_t>(arch.suffix)]);
}

std::string dotted(Arch arch) {
  const std::string plain = digits(arch);
  return fmt::format("{}.{}", arch.cc.major,
                     plain.substr(plain.find_first_of("0123456789") + std::to_string(arch.cc.major).size()));
}

// nvcc has no compute_21: code for 2.1 is made from compute_20.
std::string virtual_digits(Arch arch) {
  return arch.cc == image::ComputeCapability{2, 1} ? "20" : digits(arch);
}

std::string gencode(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    const std::string compute = virtual_digits(row.arch);
    for (const std::string& code : {"sm_" + digits(row.arch), "compute_" + compute}) {
      if (!(code.starts_with("sm_") ? row.sass : row.ptx)) continue;
      out += fmt::format("{}-gencode arch=compute_{},code={}", out.empty() ? "" : " ", compute, code);
    }
  }
  return out;
}

std::string cmake_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    const char* kind = row.sass && row.ptx ? "" : row.sass ? "-real" : "-virtual";
    out += fmt::format("{}{}{}", out.empty() ? "" : ";", digits(row.arch), kind);
  }
  return out;
}

// CuPy's: what nvcc takes after each -gencode, joined by semicolons.
std::string values_list(const BuildPlan& plan) {
  constexpr std::string_view kOption = "-gencode ";
  std::string out = gencode(plan).substr(kOption.size());
  for (std::size_t at = 0; (at = out.find(" -gencode ", at)) != std::string::npos;)
    out.replace(at, kOption.size() + 1, ";");
  return out;
}

// Lists of plain numbers, to which the build adds PTX of its own accord.
std::string numbers_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    if (row.sass || plan.archs.size() == 1)
      out += fmt::format("{}{}", out.empty() ? "" : ";", digits(row.arch));
  }
  return out;
}

// PyTorch's list: an entry always brings machine code, +PTX that too. Its builder knows no family (12.0f) and
// no 8.8, and refuses a list with one (measured, torch 2.15.0): the plain architecture, and the one below,
// serve more. An entry with an a has no PTX: it would compile for no GPU that the machine code does not
// serve.
std::string torch_list(const BuildPlan& plan) {
  std::vector<PlannedArch> archs;
  for (PlannedArch row : plan.archs) {
    if (row.arch.suffix == Suffix::f) row.arch.suffix = Suffix::none;
    if (row.arch.cc == image::ComputeCapability{8, 8}) row.arch.cc.minor = 6;
    const auto same = std::find_if(archs.begin(), archs.end(),
                                   [&](const PlannedArch& other) { return other.arch == row.arch; });
    if (same != archs.end()) {
      same->ptx = same->ptx || row.ptx;
    } else {
      archs.push_back(row);
    }
  }
  std::sort(archs.begin(), archs.end(),
            [](const PlannedArch& a, const PlannedArch& b) { return a.arch < b.arch; });
  std::string out;
  for (const PlannedArch& row : archs) {
    const bool ptx = row.ptx && row.arch.suffix == Suffix::none;
    out += fmt::format("{}{}{}", out.empty() ? "" : ";", dotted(row.arch), ptx ? "+PTX" : "");
  }
  return out;
}

// The plain architectures with machine code, each written by `write`: builds that take no suffix.
template <class Write>
std::string plain_list(const BuildPlan& plan, std::string_view separator, Write&& write) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    if (row.arch.suffix != Suffix::none || (!row.sass && !plan.by_ptx)) continue;
    if (!out.empty()) out += separator;
    out += write(row.arch);
  }
  return out;
}

// XLA's: sm_75 is machine code alone, compute_75 machine code and PTX.
std::string xla_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs)
    out += fmt::format("{}{}_{}", out.empty() ? "" : ",", row.ptx ? "compute" : "sm", digits(row.arch));
  return out;
}

// FlashAttention 2 knows five architectures; what is between them runs the code of the one below.
std::string flash_list(const BuildPlan& plan) {
  constexpr std::array<unsigned, 5> kKnown = {80, 90, 100, 110, 120};
  std::string out;
  unsigned last = 0;
  for (const PlannedArch& row : plan.archs) {
    unsigned known = 0;
    for (const unsigned number : kKnown) {
      if (number / 10 == row.arch.cc.major && number <= row.arch.cc.number()) known = number;
    }
    if (known == 0 || known == last) continue;
    out += fmt::format("{}{}", out.empty() ? "" : ";", known);
    last = known;
  }
  return out;
}

// Kokkos builds for one architecture, which has a name.
std::string kokkos_option(const BuildPlan& plan) {
  constexpr std::pair<unsigned, std::string_view> kNames[] = {
      {35, "KEPLER35"},      {37, "KEPLER37"},      {50, "MAXWELL50"},    {52, "MAXWELL52"},
      {53, "MAXWELL53"},     {60, "PASCAL60"},      {61, "PASCAL61"},     {70, "VOLTA70"},
      {72, "VOLTA72"},       {75, "TURING75"},      {80, "AMPERE80"},     {86, "AMPERE86"},
      {87, "AMPERE87"},      {89, "ADA89"},         {90, "HOPPER90"},     {100, "BLACKWELL100"},
      {103, "BLACKWELL100"}, {120, "BLACKWELL120"}, {121, "BLACKWELL120"}};
  for (const PlannedArch& row : plan.archs) {
    if (!row.added) continue;
    for (const auto& [number, name] : kNames) {
      if (number == row.arch.cc.number()) return fmt::format("-DKokkos_ARCH_{}=ON", name);
    }
  }
  return {};
}

// nvcc -ptx takes one architecture: the lowest serves the others too.
std::string lowest_ptx(const BuildPlan& plan) {
  for (const PlannedArch& row : plan.archs) {
    if (row.arch.suffix != Suffix::none) continue;
    return fmt::format("-gencode arch=compute_{},code=sm_{}", row.arch.cc.number(), row.arch.cc.number());
  }
  return {};
}

// rules_cuda: compute_75:sm_75;compute_90:sm_90,compute_90
std::string rules_cuda_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    const std::string arch = digits(row.arch);
    out += fmt::format("{}compute_{}:", out.empty() ? "" : ";", arch);
    if (row.sass) out += fmt::format("sm_{}{}", arch, row.ptx ? "," : "");
    if (row.ptx) out += fmt::format("compute_{}", arch);
  }
  return out;
}

// What comes on top of a list that the build has already.
std::string added_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    if (!row.added) continue;
    const std::string arch = digits(row.arch);
    out += fmt::format("{}-gencode arch=compute_{},code={}{}", out.empty() ? "" : " ", arch,
                       row.sass ? "sm_" : "compute_", arch);
  }
  return out;
}

// FlashInfer compiles for what is named, with the features of 9.0 and newer.
std::string locked_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs)
    if (row.added)
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", dotted(row.arch),
                         row.arch.cc.major >= 9 && row.arch.suffix == Suffix::none ? "a" : "");
  return out;
}

}  // namespace

// PTX of the newest plain architecture, so that GPUs which are newer still can compile it. There is always
// one: what is added for the device is plain.
void add_newest_ptx(std::vector<PlannedArch>& archs) {
  PlannedArch* newest = nullptr;
  for (PlannedArch& row : archs) {
    if (row.arch.suffix == Suffix::none && (newest == nullptr || newest->arch < row.arch)) newest = &row;
  }
  if (newest != nullptr) newest->ptx = true;
}

PlannedArch* family_sibling(std::vector<PlannedArch>& archs, const PlannedArch& plain) {
  for (PlannedArch& row : archs) {
    if (row.arch.cc == plain.arch.cc && row.arch.suffix == Suffix::f) return &row;
  }
  return nullptr;
}

std::string newest_plain(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    if (row.arch.suffix == Suffix::none) out = dotted(row.arch);
  }
  return out;
}

std::string arch_list(const BuildPlan& plan, ArchList style) {
  switch (style) {
    case ArchList::gencode:
      return gencode(plan);
    case ArchList::values:
      return values_list(plan);
    case ArchList::cmake:
      return cmake_list(plan);
    case ArchList::numbers:
      return numbers_list(plan);
    case ArchList::torch:
      return torch_list(plan);
    case ArchList::plain:
      return plain_list(plan, ";", digits);
    case ArchList::comma:
      return plain_list(plan, ",", digits);
    case ArchList::spaces:
      return plain_list(plan, " ", digits);
    case ArchList::dots:
      return plain_list(plan, ";", dotted);
    case ArchList::xla:
      return xla_list(plan);
    case ArchList::flash:
      return flash_list(plan);
    case ArchList::kokkos:
      return kokkos_option(plan);
    case ArchList::lowest:
      return lowest_ptx(plan);
    case ArchList::rules_cuda:
      return rules_cuda_list(plan);
    case ArchList::locked:
      return locked_list(plan);
    case ArchList::added:
      return added_list(plan);
  }
  return {};
}

}  // namespace kshim::advise
