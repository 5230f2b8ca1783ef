// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/diff.h"

namespace kshim::compare {
namespace {

using image::Arch;
using image::ImageKind;
using image::Version;

/// All images of one kind and architecture.
struct Images {
  Version isa;  ///< the newest
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
/// Cubins first.
struct Order {
  bool operator()(const std::pair<ImageKind, Arch>& a, const std::pair<ImageKind, Arch>& b) const {
    const auto key = [](const auto& row) {
      return std::tuple(row.first != ImageKind::cubin, row.first, row.second);
    };
    return key(a) < key(b);
  }
};
using ByArch = std::map<std::pair<ImageKind, Arch>, Images, Order>;

ByArch by_arch(const Object& object) {
  ByArch out;
  for (const ImageCount& row : object.images) {
    Images& images = out[{row.candidate.kind, row.candidate.arch}];
    images.isa = std::max(images.isa, row.candidate.isa);
    images.count += row.count;
    images.bytes += row.bytes;
  }
  return out;
}

std::string name_of(Version version) { return version.known() ? name(version) : "?"; }
std::string what_of(ImageKind kind) {
  return kind == ImageKind::cubin ? "architecture" : std::string(image::to_name(kind));
}

struct Comparison {
  void run() {
    for (const Arch target : options_.targets) judge_target(target);
    for (const auto& [key, images] : before_) {
      const auto now = after_.find(key);
      if (now == after_.end()) {
        gone(key.first, key.second, images);
      } else {
        stayed(key.first, key.second, images, now->second);
      }
    }
    for (const auto& [key, images] : after_) {
      if (!before_.contains(key)) come(key.first, key.second);
    }
    if (options_.targets.empty()) judge_gpus();
    compare_sizes();
  }

  void add(Effect effect, std::string what, std::string arch, std::string text, std::string before = {},
           std::string after = {}) {
    changes_.push_back({.effect = effect,
                        .what = std::move(what),
                        .pair = number_,
                        .arch = std::move(arch),
                        .text = std::move(text),
                        .before = std::move(before),
                        .after = std::move(after)});
  }

  /// What became of a GPU, or of several.
  void add_outcome(Outcome was, Outcome is, std::string what, std::string arch, std::string_view who) {
    const std::string before = outcome_text(was, true);
    const std::string after = outcome_text(is, false);
    add(is > was ? Effect::lost : Effect::gained, std::move(what), std::move(arch),
        fmt::format("{}: {}, {}", who, before, after), before, after);
  }

  /// Where GPUs were named, only what becomes of these is a loss or a gain.
  Effect literal(Effect effect) const { return options_.targets.empty() ? effect : Effect::changed; }

  void judge_target(Arch target) {
    const Outcome was = outcome_on(*pair_.a, target, options_.driver);
    const Outcome is = outcome_on(*pair_.b, target, options_.driver);
    if (was == is) return;
    const std::string arch = image::name(ImageKind::cubin, target);
    add_outcome(was, is, "target", arch, arch);
  }

  void gone(ImageKind kind, Arch arch, const Images& images) {
    const std::string name = image::name(kind, arch);
    Effect effect = Effect::lost;
    std::string text;
    if (kind == ImageKind::cubin) {
      judged_.insert(arch.cc);
      const Outcome is = outcome_on(*pair_.b, {arch.cc, {}}, options_.driver);
      text = fmt::format("{}: a GPU of {} {}{}", name, image::name(arch.cc),
                         is == Outcome::sass ? "still " : "", outcome_text(is, false));
    } else if (kind == ImageKind::ptx) {
      const bool served = arch.suffix == image::Suffix::none && has_ptx_at_most(after_, arch);
      if (served) effect = Effect::changed;
      text = fmt::format("PTX for {}: {}", name,
                         served ? "gone, and older PTX serves what it served"
                                : fmt::format("GPUs newer than the newest SASS {}",
                                              has_kind(after_, kind) ? "are served by other PTX, if at all"
                                                                     : "find none any more"));
    } else if (kind == ImageKind::tileir) {
      text = fmt::format("{}: no Tile IR is left to be compiled", name);
    } else {
      text = fmt::format("{}: nothing is left to be linked for {}", name, image::name(arch.cc));
    }
    add(literal(effect), what_of(kind), name, std::move(text),
        kind == ImageKind::ptx ? name_of(images.isa) : "");
  }

  void come(ImageKind kind, Arch arch) {
    const std::string name = image::name(kind, arch);
    const bool served =
        kind == ImageKind::ptx && arch.suffix == image::Suffix::none && has_ptx_at_most(before_, arch);
    std::string text = kind == ImageKind::ptx ? "PTX for " + name : name;
    if (kind == ImageKind::cubin) {
      judged_.insert(arch.cc);
      const Outcome was = outcome_on(*pair_.a, {arch.cc, {}}, options_.driver);
      text += fmt::format(": a GPU of {} {}{}", image::name(arch.cc), was == Outcome::sass ? "already " : "",
                          outcome_text(was, true));
    } else if (kind == ImageKind::ptx && !served) {
      text += ": GPUs without code of their own, newer ones too, can compile it";
    }
    add(literal(served ? Effect::changed : Effect::gained), what_of(kind), name, std::move(text));
  }

  void stayed(ImageKind kind, Arch arch, const Images& was, const Images& is) {
    const std::string name = image::name(kind, arch);
    if (is.count < was.count) {
      add(Effect::changed, "images", name,
          fmt::format("{}: {} of {} are left", name, is.count, counted(was.count, "image")),
          std::to_string(was.count), std::to_string(is.count));
    }
    if (kind == ImageKind::ptx && was.isa.known() && is.isa.known() && was.isa != is.isa)
      isa_changed(name, was.isa, is.isa);
  }

  void isa_changed(const std::string& name, Version was, Version is) {
    const Version driver_was = image::cuda_of_ptx_isa(was);
    const Version driver_is = image::cuda_of_ptx_isa(is);
    // A caller that named the driver, or GPUs with code of their own, is not harmed.
    const bool read = options_.driver.known() && is <= image::ptx_isa_of_cuda(options_.driver);
    const auto compiled = [&](Arch target) {
      return outcome_on(*pair_.b, target, options_.driver) == Outcome::jit;
    };
    const bool needed = options_.targets.empty() || std::ranges::any_of(options_.targets, compiled);
    const Effect effect = read || !needed ? Effect::changed : is > was ? Effect::lost : Effect::gained;
    add(effect, "ptx-isa", name,
        fmt::format("PTX for {} is of version {}, was {}: it takes a driver for CUDA {}, took one for {}",
                    name, name_of(is), name_of(was), name_of(driver_is), name_of(driver_was)),
        name_of(was), name_of(is));
  }

  /// GPUs that no image is named after.
  void judge_gpus() {
    std::map<std::pair<Outcome, Outcome>, std::vector<std::string>> groups;
    for (const GpuRow& gpu : gpus()) {
      if (judged_.contains(gpu.cc)) continue;
      const Outcome was = outcome_on(*pair_.a, {gpu.cc, {}}, options_.driver);
      const Outcome is = outcome_on(*pair_.b, {gpu.cc, {}}, options_.driver);
      if (was != is) groups[{was, is}].emplace_back(image::to_name(gpu.cc).view());
    }
    for (const auto& [outcomes, names] : groups) {
      const auto [was, is] = outcomes;
      add_outcome(was, is, "gpu", join(names, ", "), "GPUs of " + enumerate(names));
    }
  }

  void compare_sizes() {
    std::uint64_t was = 0;
    std::uint64_t is = 0;
    std::vector<std::string> parts;
    for (const auto& [key, images] : before_) was += images.bytes;
    for (const auto& [key, images] : after_) {
      is += images.bytes;
      const auto old = before_.find(key);
      const std::uint64_t bytes = old == before_.end() ? 0 : old->second.bytes;
      if (images.bytes > bytes && is_much(bytes, images.bytes))
        parts.push_back(fmt::format("{} +{}", name(key.first, key.second), size_text(images.bytes - bytes)));
    }
    if (options_.sizes) return list_sizes();
    if (was == 0 || is == 0 || !is_much(was, is)) return;
    const double percent =
        100 * (static_cast<double>(is) - static_cast<double>(was)) / static_cast<double>(was);
    std::string text =
        fmt::format("device code {}, was {} ({:+.0f} %)", size_text(is), size_text(was), percent);
    if (!parts.empty()) text += ": " + join(parts, ", ");
    add(Effect::changed, "size", {}, std::move(text), std::to_string(was), std::to_string(is));
  }

  /// Every difference, the largest first; of kernels, the largest twenty.
  void list_sizes() {
    using Sizes =
        std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;  // before and after, by name
    Sizes archs;
    Sizes kernels;
    for (const auto& [key, images] : before_) archs[name(key.first, key.second)].first = images.bytes;
    for (const auto& [key, images] : after_) archs[name(key.first, key.second)].second = images.bytes;
    for (const auto& [name, bytes] : pair_.a->code_bytes) kernels[name].first = bytes;
    for (const auto& [name, bytes] : pair_.b->code_bytes) kernels[name].second = bytes;
    const auto far = [](const auto& row) {
      return std::max(row.second.first, row.second.second) - std::min(row.second.first, row.second.second);
    };
    for (const Sizes* sizes : {&archs, &kernels}) {
      std::vector<std::pair<std::string, Sizes::mapped_type>> rows(sizes->begin(), sizes->end());
      std::erase_if(rows, [&](const auto& row) { return far(row) == 0; });
      std::ranges::stable_sort(rows, std::greater(), far);
      rows.resize(std::min<std::size_t>(rows.size(), sizes == &kernels ? 20 : 1000));
      for (const auto& row : rows) {
        const auto [was, is] = row.second;
        const std::string what = sizes == &kernels ? "kernel " + shorten(row.first, 60) : row.first;
        add(Effect::changed, "size", what,
            fmt::format("{}: {}, was {} ({}{})", what, size_text(is), size_text(was), is > was ? '+' : '-',
                        size_text(far(row))),
            std::to_string(was), std::to_string(is));
      }
    }
  }

  /// A few per cent are another compiler's.
  static bool is_much(std::uint64_t was, std::uint64_t is) {
    const std::uint64_t more = is > was ? is - was : was - is;
    return more > std::max(was, is) / 20;
  }
  static bool has_kind(const ByArch& images, ImageKind kind) {
    return std::ranges::any_of(images, [kind](const auto& row) { return row.first.first == kind; });
  }
  static bool has_ptx_at_most(const ByArch& images, Arch arch) {
    return std::ranges::any_of(images, [arch](const auto& row) {
      return row.first.first == ImageKind::ptx && row.first.second.suffix == image::Suffix::none &&
             row.first.second.cc <= arch.cc;
    });
  }

  const Pair& pair_;
  std::size_t number_;
  const DiffRequest& options_;
  std::vector<Change>& changes_;
  ByArch before_ = by_arch(*pair_.a);
  ByArch after_ = by_arch(*pair_.b);
  std::set<image::ComputeCapability> judged_ = {};  ///< GPUs whose own code changed, which says enough
};

}  // namespace

Outcome outcome_on(const Object& object, Arch target, Version driver) {
  const auto judged = object.targets.find(target);
  if (judged != object.targets.end()) return judged->second;
  const auto candidates = mapped(object.images, &ImageCount::candidate);
  const image::Choice choice =
      image::select_image(candidates, {.device = target.cc, .driver = driver, .jit = {}}).choice;
  return choice == image::Choice::sass  ? Outcome::sass
         : choice == image::Choice::jit ? Outcome::jit
                                        : Outcome::none;
}

std::string outcome_text(Outcome outcome, bool before) {
  constexpr std::pair<const char*, const char*> kTexts[] = {
      {"needed none", "needs none"},
      {"had code that fits", "has code that fits"},
      {"had it compiled from PTX", "has it compiled from PTX now"},
      {"had code for a part", "has code for a part"},
      {"had no code", "finds no code now"}};
  const auto& [was, is] = kTexts[static_cast<std::size_t>(outcome)];
  return before ? was : is;
}

void compare_images(const Pair& pair, std::size_t number, const DiffRequest& options,
                    std::vector<Change>& changes) {
  Comparison{pair, number, options, changes}.run();
}

}  // namespace kshim::compare
