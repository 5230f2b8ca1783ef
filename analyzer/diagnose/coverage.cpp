// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/coverage.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/data/knowledge.h"
#include "kshim/image/decompress.h"
#include "kshim/image/ltoir.h"

namespace kshim::analysis {
namespace {

using image::Candidate;
using image::ImageKind;

bool loaded_by_choice(const DeviceCode& code, std::span<const std::uint32_t> lacking) {
  return std::any_of(code.modules.begin(), code.modules.end(),
                     [](const CodeModule& each) { return !each.embedded; }) &&
         std::all_of(lacking.begin(), lacking.end(), [&](std::uint32_t index) {
           return code.modules[index].embedded && code.modules[index].count == 1;
         });
}

bool is_locked(const DeviceCode& code, const CodeModule& module) {
  bool out = true;
  each_image_of(module, [&](std::uint32_t index) {
    const Candidate& image = code.images[index].candidate;
    out = out && (image.arch.suffix != image::Suffix::none || image.kind == ImageKind::ltoir);
  });
  return out;
}

}  // namespace

bool ModuleCoverage::reads(const CodeImage& image) const {
  return image::driver_reads(image.compression, driver_);
}

bool ModuleCoverage::set(const CodeModule& module) {
  candidates_.clear();
  bool executable = false;
  each_image_of(module, [&](std::uint32_t index) {
    const CodeImage& image = code_.images[index];
    executable = executable || image.candidate.kind != ImageKind::ltoir;
    if (reads(image)) candidates_.push_back(image.candidate);
  });
  // What is wrong with the module is only that it holds an image of an unknown kind, which may well fit.
  holds_unknown_kind_ = module.damage != 0 && module.damage <= code_.damage.size() &&
                        code_.damage[module.damage - 1].of == Damage::Of::unknown_kind;
  return executable;
}

Coverage ModuleCoverage::on(image::ComputeCapability cc) const {
  Coverage out;
  const image::Selection selection = select_image(candidates_, {cc, driver_, {}});
  out.choice = selection.choice;
  if (selection.choice != image::Choice::none) {
    out.image = candidates_[selection.index];
  } else {
    // LTO-IR beside PTX is one answer: what no driver takes is there for nvJitLink.
    out.judged = !holds_unknown_kind_ &&
                 std::none_of(candidates_.begin(), candidates_.end(),
                              [&](const Candidate& each) { return image::links_for(each, cc); });
  }
  return out;
}

Missed missed_modules(std::string_view file, const DeviceCode& code, std::span<const std::uint32_t> lacking,
                      bool served) {
  Missed out;
  out.modules.assign(lacking.begin(), lacking.end());
  if (!served || lacking.empty()) return out;
  if (find_probing_library(file) != nullptr) {
    out.by_design = ByDesign::probing_library;
  } else if (loaded_by_choice(code, lacking)) {
    out.by_design = ByDesign::loaded_by_choice;
  } else {
    std::erase_if(out.modules, [&](std::uint32_t index) { return is_locked(code, code.modules[index]); });
    if (out.modules.empty()) out.by_design = ByDesign::locked;
  }
  if (out.by_design != ByDesign::no) out.modules.clear();
  return out;
}

BuiltBy builder_of(std::span<const ImageFact> images, image::Version cubins) {
  if (cubins.known()) return {cubins, "its cubins say so"};
  image::Version isa;
  for (const ImageFact& image : images) {
    if (image.candidate.kind == image::ImageKind::ptx) isa = std::max(isa, image.candidate.isa);
  }
  const ToolkitRow* row = isa.known() ? toolkit_of_isa(isa) : nullptr;
  if (row == nullptr) return {};
  BuiltBy out{row->version, fmt::format("its PTX is of version {}", image::to_name(isa).view())};
  // PTX may be older than the file: cuFFT of CUDA 13.0 has PTX 7.8 beside cubins for sm_110.
  for (const ImageFact& image : images) {
    const ToolkitRow* first = first_toolkit_for(image.candidate.arch);
    if (first == nullptr || !(out.toolkit < first->version)) continue;
    out.toolkit = first->version;
    out.how =
        fmt::format("its {} takes it", image::to_name(image.candidate.kind, image.candidate.arch).view());
  }
  return out;
}

}  // namespace kshim::analysis
