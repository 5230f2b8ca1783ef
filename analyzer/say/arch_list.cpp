// SPDX-License-Identifier: Apache-2.0
// How each build system wants to be told which architectures to build.
#include "analyzer/say/shell.h"

namespace kshim::say {
using data::ArchList;

namespace {

using image::Arch;
using image::Suffix;

/// How an entry of a list is written, of machine code, of PTX, and of both. {n}: 75 or 120f, {d}: 7.5 or
/// 12.0f, {v}: as {n}, of nvcc's virtual architecture.
struct Notation {
  ArchList style;
  std::string_view separator;
  std::string_view sass;
  std::string_view ptx;
  std::string_view both;
  bool (*takes)(const BuildPlan& plan, const PlannedArch& row) = [](const BuildPlan&, const PlannedArch&) {
    return true;
  };
};

bool is_added(const BuildPlan&, const PlannedArch& row) { return row.added; }

// Builds that take no suffix, and add PTX of their own accord, if any.
bool is_plain(const BuildPlan& plan, const PlannedArch& row) {
  return row.arch.suffix == Suffix::none && (row.sass || plan.by_ptx);
}

bool is_number(const BuildPlan& plan, const PlannedArch& row) { return row.sass || plan.archs.size() == 1; }

// nvcc -ptx takes one architecture: the lowest serves the others too.
bool is_lowest(const BuildPlan& plan, const PlannedArch& row) {
  return row.arch.suffix == Suffix::none && std::ranges::none_of(plan.archs, [&](const PlannedArch& other) {
           return other.arch.suffix == Suffix::none && other.arch < row.arch;
         });
}

#define KSHIM_GENCODE(code) "-gencode arch=compute_{v},code=" code
constexpr std::string_view kSass = KSHIM_GENCODE("sm_{n}");
constexpr std::string_view kPtx = KSHIM_GENCODE("compute_{v}");
constexpr Notation kNotations[] = {
    {ArchList::gencode, " ", kSass, kPtx, KSHIM_GENCODE("sm_{n} ") KSHIM_GENCODE("compute_{v}")},
    // CuPy's: what nvcc takes after each -gencode.
    {ArchList::values, ";", "arch=compute_{v},code=sm_{n}", "arch=compute_{v},code=compute_{v}",
     "arch=compute_{v},code=sm_{n};arch=compute_{v},code=compute_{v}"},
    {ArchList::cmake, ";", "{n}-real", "{n}-virtual", "{n}"},
    {ArchList::numbers, ";", "{n}", "{n}", "{n}", is_number},
    {ArchList::torch, ";", "{d}", "{d}+PTX", "{d}+PTX"},
    {ArchList::plain, ";", "{n}", "{n}", "{n}", is_plain},
    {ArchList::comma, ",", "{n}", "{n}", "{n}", is_plain},
    {ArchList::spaces, " ", "{n}", "{n}", "{n}", is_plain},
    {ArchList::dots, ";", "{d}", "{d}", "{d}", is_plain},
    {ArchList::xla, ",", "sm_{n}", "compute_{n}", "compute_{n}"},
    {ArchList::flash, ";", "{n}", "{n}", "{n}"},
    {ArchList::lowest, " ", kSass, kSass, kSass, is_lowest},
    {ArchList::rules_cuda, ";", "compute_{n}:sm_{n}", "compute_{n}:compute_{n}",
     "compute_{n}:sm_{n},compute_{n}"},
    // What comes on top of a list that the build has already.
    {ArchList::added, " ", kSass, kPtx, kSass, is_added},
    {ArchList::locked, " ", "{d}", "{d}", "{d}", is_added},
};
#undef KSHIM_GENCODE

// PyTorch's list: an entry always brings machine code, +PTX that too. Its builder knows no family (12.0f) and
// no 8.8, and refuses a list with one (measured, torch 2.15.0): the plain architecture, and the one below,
// serve more. An entry with an a has no PTX: it would compile for no GPU that the machine code does not
// serve.
std::vector<PlannedArch> for_torch(const std::vector<PlannedArch>& archs) {
  std::vector<PlannedArch> out;
  for (PlannedArch row : archs) {
    if (row.arch.suffix == Suffix::f) row.arch.suffix = Suffix::none;
    if (row.arch.cc == image::ComputeCapability{8, 8}) row.arch.cc.minor = 6;
    row.ptx = row.ptx && row.arch.suffix == Suffix::none;
    row.sass = true;
    const auto same = std::ranges::find(out, row.arch, &PlannedArch::arch);
    if (same != out.end()) {
      same->ptx = same->ptx || row.ptx;
    } else {
      out.push_back(row);
    }
  }
  std::ranges::sort(out, {}, &PlannedArch::arch);
  return out;
}

// FlashAttention 2 knows five architectures; what is between them runs the code of the one below.
std::vector<PlannedArch> for_flash(const std::vector<PlannedArch>& archs) {
  std::vector<PlannedArch> out;
  for (const PlannedArch& row : archs)
    for (const image::ComputeCapability known :
         std::initializer_list<image::ComputeCapability>{{12, 0}, {11, 0}, {10, 0}, {9, 0}, {8, 0}})
      if (known.major == row.arch.cc.major && (out.empty() || out.back().arch.cc != known))
        out.push_back({{known, Suffix::none}, true});
  return out;
}

// FlashInfer compiles for what is named, with the features of 9.0 and newer.
std::vector<PlannedArch> for_flashinfer(std::vector<PlannedArch> archs) {
  for (PlannedArch& row : archs)
    if (row.arch.cc.major >= 9 && row.arch.suffix == Suffix::none) row.arch.suffix = Suffix::a;
  return archs;
}

// Kokkos builds for one architecture, which has a name.
std::string kokkos_option(const BuildPlan& plan) {
  constexpr std::pair<unsigned, std::string_view> kNames[] = {
      {35, "KEPLER35"},      {37, "KEPLER37"},      {50, "MAXWELL50"},    {52, "MAXWELL52"},
      {53, "MAXWELL53"},     {60, "PASCAL60"},      {61, "PASCAL61"},     {70, "VOLTA70"},
      {72, "VOLTA72"},       {75, "TURING75"},      {80, "AMPERE80"},     {86, "AMPERE86"},
      {87, "AMPERE87"},      {89, "ADA89"},         {90, "HOPPER90"},     {100, "BLACKWELL100"},
      {103, "BLACKWELL100"}, {120, "BLACKWELL120"}, {121, "BLACKWELL120"}};
  for (const PlannedArch& row : plan.archs)
    for (const auto& [number, name] : kNames)
      if (row.added && number == row.arch.cc.number()) return fmt::format("-DKokkos_ARCH_{}=ON", name);
  return {};
}

}  // namespace

std::string dotted(Arch arch) {
  constexpr std::array<std::string_view, 3> kSuffix = {"", "a", "f"};
  return fmt::format("{}.{}{}", arch.cc.major, arch.cc.minor, kSuffix[static_cast<std::size_t>(arch.suffix)]);
}

std::string arch_list(const BuildPlan& plan, ArchList style) {
  if (style == ArchList::kokkos) return kokkos_option(plan);
  const Notation& notation = *std::ranges::find(kNotations, style, &Notation::style);
  std::vector<std::string> out;
  for (const PlannedArch& row : style == ArchList::torch    ? for_torch(plan.archs)
                                : style == ArchList::flash  ? for_flash(plan.archs)
                                : style == ArchList::locked ? for_flashinfer(plan.archs)
                                                            : plan.archs) {
    if (!notation.takes(plan, row)) continue;
    const std::string number = sm_name(row.arch).substr(3);
    // nvcc has no compute_21: code for 2.1 is made from compute_20.
    out.push_back(
        core::expand(row.sass && row.ptx ? notation.both
                     : row.sass          ? notation.sass
                                         : notation.ptx,
                     {{"n", number}, {"v", number == "21" ? "20" : number}, {"d", dotted(row.arch)}}));
  }
  return core::join(out, notation.separator);
}

}  // namespace kshim::say
