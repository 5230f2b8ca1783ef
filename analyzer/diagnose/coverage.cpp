// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/coverage.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/image_contents.h"
#include "kshim/image/decompress.h"
#include "kshim/image/kernel_names.h"
#include "kshim/image/ltoir.h"

namespace kshim::diagnose {
using device_code::CodeImage;
using device_code::CodeModule;
using device_code::DeviceCode;

namespace {

using image::Candidate;
using image::ImageKind;

bool loaded_by_choice(const DeviceCode& code, std::span<const std::uint32_t> lacking) {
  return std::ranges::any_of(code.modules, [](const CodeModule& each) { return !each.embedded; }) &&
         std::ranges::all_of(lacking, [&](std::uint32_t index) {
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

// A library that picks its code has something for every GPU, and next to nothing for those that it leaves
// out.
bool leaves_out(const DeviceCode& code, std::size_t served) {
  constexpr std::size_t kShare = 20;  // of what the best served one has
  std::map<image::Arch, std::size_t> modules;
  std::size_t best = 0;
  for (const CodeModule& module : code.modules) {
    each_image_of(module, [&](std::uint32_t index) {
      const Candidate& image = code.images[index].candidate;
      if (image.kind == ImageKind::cubin) best = std::max(best, ++modules[image.arch]);
    });
  }
  return served * kShare < best;
}

using image::Choice;
using image::ComputeCapability;

// One file is seldom built by more than one toolkit: so many small cubins are asked for their compiler.
constexpr std::ptrdiff_t kAsked = 16;

bool is_executable(const Candidate& image) { return image.kind != ImageKind::ltoir; }

void add_use(const image::KernelInfo& kernel, std::uint16_t label, std::vector<KernelUse>& uses) {
  const auto raise = [](std::uint32_t& known, std::uint32_t value) {
    constexpr std::uint32_t kUnknown = image::KernelInfo::kUnknown;
    if (known == kUnknown || (value != kUnknown && value > known)) known = value;
  };
  auto use = std::ranges::lower_bound(uses, label, {}, &KernelUse::label);
  if (use == uses.end() || use->label != label) use = uses.insert(use, {.label = label});
  raise(use->registers, kernel.registers);
  raise(use->shared_bytes, kernel.shared_bytes);
  raise(use->local_bytes, kernel.local_bytes);
  raise(use->max_threads, kernel.max_threads);
  use->code_bytes += kernel.code_bytes;
}

class Payloads {
 public:
  explicit Payloads(std::vector<std::string>& damage) : damage_(damage) {}

  /// The payload in the clear, or its first bytes, valid until the next call; empty, with a clause in
  /// `damage`, where it is broken.
  std::optional<Bytes> read(const CodeImage& image, std::uint64_t size = UINT64_MAX) {
    const auto clear = size < image.bytes
                           ? decompressor_.start(entry_of(image), static_cast<std::size_t>(size))
                           : decompressor_.run(entry_of(image));
    if (clear) return *clear;
    note(image, describe(clear.error().code));
    return std::nullopt;
  }
  void note(const CodeImage& image, std::string_view what) {
    damage_.push_back(fmt::format("the {} image at offset {} {}",
                                  name(image.candidate.kind, image.candidate.arch), image.offset, what));
  }

 private:
  std::vector<std::string>& damage_;
  image::Decompressor decompressor_;
};

/// Covers one file: modules by headers alone, or with every kernel.
class Coverer {
 public:
  Coverer(const DeviceCode& code, const std::vector<image::Arch>& targets, image::Version driver,
          FileCoverage& out)
      : code_(code), targets_(targets), modules_(code, driver), out_(out), payloads_(out.damage) {
    for (const image::Arch& target : targets) out_.targets.push_back({target, 0, 0, 0});
    out_.lacking.resize(targets.size());
  }

  void by_headers() {
    if (targets_.empty()) return;
    look();
    std::vector<Judged> judged(targets_.size());
    std::vector<Coverage> on(targets_.size());
    for (std::uint32_t index = 0; index < code_.modules.size(); ++index) {
      if (kernels_[index] == Kernels::no || !modules_.set(code_.modules[index])) continue;
      for (std::size_t target = 0; target < targets_.size(); ++target) {
        on[target] = modules_.on(targets_[target].cc);
        if (on[target].judged)
          judged[target][static_cast<std::size_t>(on[target].choice)].add(index, kernels_[index]);
      }
      add(index, on);
    }
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      for (const Choice choice : {Choice::sass, Choice::jit, Choice::none})
        confirm(judged[target][static_cast<std::size_t>(choice)], choice, target);
    }
  }

  void by_kernels(KernelTable& table) {
    table.first.resize(code_.modules.size());
    for (std::uint32_t index = 0; index < code_.modules.size(); ++index) {
      const CodeModule& module = code_.modules[index];
      std::vector<Coverage> on(targets_.size());
      const bool loadable = modules_.set(module);
      for (std::size_t target = 0; target < targets_.size(); ++target) {
        if (loadable) on[target] = modules_.on(targets_[target].cc);
        on[target].judged = on[target].judged && loadable;
      }
      bool kernels = false;
      each_image_of(module, [&](std::uint32_t i) {
        const CodeImage& image = code_.images[i];
        std::uint64_t served = 0;
        for (std::size_t target = 0; target < targets_.size(); ++target) {
          const bool taken = on[target].choice != Choice::none && modules_.reads(image) &&
                             device_code::same_program(on[target].image, image.candidate);
          // What no driver is to load, or nobody can judge, is not missed.
          if (taken || !on[target].judged) served |= std::uint64_t{1} << target;
        }
        kernels = add_kernels(image, served, table, table.first[index]) || kernels;
      });
      if (kernels) add(index, on);
    }
  }

  /// What built the code that the CUDA runtime registers: a few small cubins are asked.
  image::Version builder() {
    std::vector<ImageFact> all;
    std::vector<const CodeImage*> cubins;
    for (const CodeModule& module : code_.modules) {
      if (module.embedded) continue;
      each_image_of(module, [&](std::uint32_t i) {
        const CodeImage& image = code_.images[i];
        all.push_back({.candidate = image.candidate, .has_kernel = {}, .toolkit = {}});
        if (image.candidate.kind == ImageKind::cubin) cubins.push_back(&image);
      });
    }
    return builder_of(all, makers_of(std::move(cubins)).toolkit).toolkit;
  }

  /// The origin of the modules that lack code, by target.
  void add_makers() {
    for (const std::vector<std::uint32_t>& lacking : out_.lacking) {
      std::vector<const CodeImage*> cubins;
      for (const std::uint32_t module : lacking)
        each_image_of(code_.modules[module], [&](std::uint32_t i) {
          if (code_.images[i].candidate.kind == ImageKind::cubin) cubins.push_back(&code_.images[i]);
        });
      out_.makers.push_back(makers_of(std::move(cubins)));
    }
  }

 private:
  FileCoverage::Makers makers_of(std::vector<const CodeImage*> cubins) {
    const auto end = cubins.begin() + std::min(kAsked, std::ssize(cubins));
    std::partial_sort(cubins.begin(), end, cubins.end(), [](const CodeImage* a, const CodeImage* b) {
      return std::tuple(a->bytes, a->offset) < std::tuple(b->bytes, b->offset);
    });
    FileCoverage::Makers out;
    std::map<std::string_view, std::ptrdiff_t> images;  // by library
    std::vector<std::string> unread;  // dropped: the judge of the images reports what it cannot read
    Payloads payloads(unread);
    for (auto at = cubins.begin(); at != end; ++at) {
      const auto [known, first] = makers_.try_emplace(*at);
      if (first)
        if (const auto clear = payloads.read(**at))
          known->second = {device_code::toolkit_of(ImageKind::cubin, *clear), library_of(*clear)};
      out.toolkit = std::max(out.toolkit, known->second.toolkit);
      const std::string_view library = known->second.library;
      if (!library.empty() && 2 * ++images[library] > end - cubins.begin()) out.library = library;
    }
    return out;
  }

  static std::string_view library_of(Bytes cubin) {
    std::string_view out;
    each_kernel_name(ImageKind::cubin, cubin, [&](std::string_view kernel) {
      const data::VendorLibraryRow* row = data::library_of_kernel(kernel);
      if (row != nullptr && !row->part_of_cuda) out = row->prefix;
      return out.empty();
    });
    return out;
  }

  enum class Kernels : std::uint8_t { no, yes, assumed };

  /// The modules for which a driver makes the same choice on a target.
  struct Alike {
    bool confirmed = false;              ///< one of them has kernels
    std::vector<std::uint32_t> assumed;  ///< to have some; left empty once one is confirmed
    void add(std::uint32_t module, Kernels kernels) {
      confirmed = confirmed || kernels == Kernels::yes;
      confirmed ? assumed.clear() : assumed.push_back(module);
    }
  };
  using Judged = std::array<Alike, 3>;  ///< by Choice

  void add(std::uint32_t module, const std::vector<Coverage>& on) {
    ++out_.modules;
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      if (!on[target].judged) continue;
      ++count_of(on[target].choice, target);
      if (on[target].choice == Choice::none) out_.lacking[target].push_back(module);
    }
  }

  std::uint64_t& count_of(Choice choice, std::size_t target) {
    TargetVerdict& verdict = out_.targets[target];
    return choice == Choice::sass ? verdict.sass : choice == Choice::jit ? verdict.jit : verdict.lacking;
  }

  /// Sees which modules have kernels, whatever the targets are.
  void look() {
    kernels_.assign(code_.modules.size(), Kernels::no);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // by cost
    for (std::uint32_t index = 0; index < code_.modules.size(); ++index) {
      if (!modules_.set(code_.modules[index])) continue;
      std::uint64_t cost = UINT64_MAX;
      each_image_of(code_.modules[index], [&](std::uint32_t i) {
        const CodeImage& image = code_.images[i];
        if (is_executable(image.candidate))
          cost = std::min(cost, image::look_cost(image.compression, image.bytes));
      });
      order.emplace_back(cost, index);
    }
    std::ranges::sort(order);
    for (const auto& [cost, index] : order)
      kernels_[index] = looked_at_ >= image::kMaxLook       ? Kernels::assumed
                        : has_kernels(code_.modules[index]) ? Kernels::yes
                                                            : Kernels::no;
  }

  /// A verdict rests on no module that may have no kernels.
  void confirm(const Alike& alike, Choice choice, std::size_t target) {
    if (alike.confirmed) return;
    for (const std::uint32_t module : alike.assumed) {
      const auto [at, first] = confirmed_.try_emplace(module, false);
      if (first) at->second = has_kernels(code_.modules[module]);
      if (at->second) return;
      --count_of(choice, target);
      if (choice == Choice::none) std::erase(out_.lacking[target], module);
    }
  }

  // Any image of the module may be empty, of a part without device code or by __CUDA_ARCH__: all of them have
  // to be, before a module counts as one without kernels. The cheapest are looked at first.
  bool has_kernels(const CodeModule& module) {
    std::vector<const CodeImage*> images;
    each_image_of(module, [&](std::uint32_t i) {
      if (is_executable(code_.images[i].candidate)) images.push_back(&code_.images[i]);
    });
    std::ranges::stable_sort(images, {}, [](const CodeImage* image) {
      return std::pair(image::look_cost(image->compression, image->bytes), image->bytes);
    });
    return std::ranges::any_of(images, [&](const CodeImage* image) { return has_kernels(*image); });
  }

  // What cannot be read, or its names not, is taken to have kernels.
  bool has_kernels(const CodeImage& image) {
    if (image.candidate.kind == ImageKind::tileir) return true;
    return image::find_kernels(image.candidate.kind, image.compression, image.bytes, [&](std::uint64_t size) {
             looked_at_ += size;
             return payloads_.read(image, size);
           }) != image::HasKernels::no;
  }

  bool add_kernels(const CodeImage& image, std::uint64_t served, KernelTable& table, std::string& first) {
    if (!is_executable(image.candidate)) return false;
    if (image.candidate.kind == ImageKind::tileir) {
      table.complete = false;
      return true;
    }
    const auto clear = payloads_.read(image);
    table.complete = table.complete && clear.has_value();
    if (!clear) return true;
    const std::uint16_t label = label_of(image.candidate, table);
    const auto list = lister_.list(image.candidate.kind, *clear);
    for (const image::KernelSlot& slot : list.kernels) {
      auto at = table.kernels.find(slot.info.name);
      if (at == table.kernels.end())
        at = table.kernels.emplace(std::string(slot.info.name), KernelCoverage{}).first;
      at->second.served |= served;
      add_use(slot.info, label, at->second.uses);
    }
    if (first.empty() && !list.kernels.empty()) first = list.kernels.front().info.name;
    if (!list.whole) payloads_.note(image, "has kernels that cannot be listed");
    table.complete = table.complete && list.whole;
    return !list.kernels.empty();
  }

  std::uint16_t label_of(const Candidate& image, KernelTable& table) {
    const auto key = std::tuple(image.kind, image.arch.cc.number(), image.arch.suffix);
    const auto known = labels_.find(key);
    if (known != labels_.end()) return known->second;
    const auto index = static_cast<std::uint16_t>(table.labels.size());
    table.labels.push_back({image.kind, image.arch});
    labels_.emplace(key, index);
    return index;
  }

  const DeviceCode& code_;
  const std::vector<image::Arch>& targets_;
  ModuleCoverage modules_;
  FileCoverage& out_;
  Payloads payloads_;
  device_code::KernelLister lister_;
  std::map<std::tuple<ImageKind, unsigned, image::Suffix>, std::uint16_t> labels_;
  std::map<const CodeImage*, FileCoverage::Makers> makers_;
  std::vector<Kernels> kernels_;             ///< by module
  std::map<std::uint32_t, bool> confirmed_;  ///< by module: what confirm() saw
  std::uint64_t looked_at_ = 0;              ///< bytes, decompressed
};

}  // namespace

bool ModuleCoverage::reads(const CodeImage& image) const {
  return image::driver_reads(image.compression, driver_);
}

ModuleCoverage::ModuleCoverage(const DeviceCode& code, image::Version driver)
    : code_(code),
      driver_(driver),
      any_registered_(std::ranges::any_of(code.modules, &CodeModule::registered)) {}

bool ModuleCoverage::set(const CodeModule& module) {
  candidates_.clear();
  registered_ = module.registered;
  bool executable = false;
  bool links = false;
  each_image_of(module, [&](std::uint32_t index) {
    const CodeImage& image = code_.images[index];
    (image.candidate.kind == ImageKind::ltoir ? links : executable) = true;
    if (reads(image)) candidates_.push_back(image.candidate);
  });
  // What is wrong with the module is only that it holds an image of an unknown kind, which may well fit.
  holds_unknown_kind_ = module.damage != 0 && module.damage <= code_.damage.size() &&
                        code_.damage[module.damage - 1].of == device_code::Damage::Of::unknown_kind;
  return executable && !(links && any_registered_ && !registered_);
}

Coverage ModuleCoverage::on(image::ComputeCapability cc) const {
  Coverage out;
  const image::Selection selection = select_image(candidates_, {cc, driver_, {}});
  out.choice = selection.choice;
  if (selection.choice != image::Choice::none) {
    out.image = candidates_[selection.index];
  } else {
    // LTO-IR beside PTX is one answer: what no driver takes is there for nvJitLink. The CUDA runtime has
    // none.
    out.judged = !holds_unknown_kind_ && std::ranges::none_of(candidates_, [&](const Candidate& each) {
      return !registered_ && image::links_for(each, cc);
    });
  }
  return out;
}

Missed missed_modules(std::string_view file, const DeviceCode& code, std::span<const std::uint32_t> lacking,
                      std::size_t served) {
  Missed out;
  out.modules.assign(lacking.begin(), lacking.end());
  if (served == 0 || lacking.empty()) return out;
  if (data::find_probing_library(file) != nullptr && !leaves_out(code, served)) {
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
  const data::ToolkitRow* row = isa.known() ? data::toolkit_of_isa(isa) : nullptr;
  if (row == nullptr) return {};
  BuiltBy out{row->version, fmt::format("its PTX is of version {}", name(isa))};
  // PTX may be older than the file: cuFFT of CUDA 13.0 has PTX 7.8 beside cubins for sm_110.
  for (const ImageFact& image : images) {
    const data::ToolkitRow* first = data::first_toolkit_for(image.candidate.arch);
    if (first == nullptr || !(out.toolkit < first->version)) continue;
    out.toolkit = first->version;
    out.how = fmt::format("its {} takes it", name(image.candidate.kind, image.candidate.arch));
  }
  return out;
}

FileCoverage cover(const DeviceCode& code, const std::vector<image::Arch>& targets, image::Version driver,
                   KernelTable* table, const std::vector<std::string>& needed) {
  FileCoverage out;
  Coverer coverer(code, targets, driver, out);
  if (table != nullptr) {
    coverer.by_kernels(*table);
  } else {
    coverer.by_headers();
  }
  coverer.add_makers();
  constexpr std::string_view kRuntime = "libcudart.so.";
  for (const std::string& library : needed) {
    if (!library.starts_with(kRuntime)) continue;
    const auto major = core::first_number<std::uint16_t>(std::string_view(library).substr(kRuntime.size()));
    out.runtime = std::max(out.runtime, image::Version{major.value_or(0), 0});
  }
  if (!out.runtime.known() && code.host != device_code::HostFormat::none)
    out.runtime = {coverer.builder().major, 0};
  return out;
}

}  // namespace kshim::diagnose
