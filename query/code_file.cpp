// SPDX-License-Identifier: Apache-2.0
#include "query/code_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>

#include "kshim/base/hash.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/kernel_names.h"
#include "kshim/image/ltoir.h"
#include "kshim/image/payload.h"
#include "query/image_names.h"

namespace kshim::query {
namespace {

using image::Candidate;
using image::ImageKind;
using image::Platform;

constexpr std::size_t kMaxNames = std::size_t{1} << 22U;

bool is_executable(const CodeImage& image) noexcept { return image.candidate.kind != ImageKind::ltoir; }

auto key_of(const Platform& platform) noexcept {
  const image::JitSwitches& jit = platform.jit;
  return std::tuple(platform.device, platform.driver, jit.force_ptx_jit, jit.disable_ptx_jit, jit.force_jit,
                    jit.disable_jit);
}
bool same(const Platform& a, const Platform& b) noexcept { return key_of(a) == key_of(b); }

void say(kshim_code code, ReasonText reason, kshim_answer& out) noexcept {
  out.code = code;
  out.reason = reason.id;
  out.text = reason.text;
}

void say_unknown(Reason reason, kshim_answer& out) noexcept {
  out = {};
  say(KSHIM_CODE_UNKNOWN, text_of(reason), out);
}

void name_image(const Candidate& image, kshim_answer& out) noexcept {
  const image::ShortName name = to_name(image.kind, image.arch);
  static_assert(sizeof name.text == sizeof out.image);
  std::memcpy(out.image, name.text.data(), sizeof out.image);
}

}  // namespace

std::size_t CodeFile::bytes() const noexcept {
  return sizeof *this + code_.bytes() + names_.bytes() + listed_for_.bytes() + candidates_.bytes() +
         images_.bytes() + holding_.bytes();
}

bool CodeFile::is_final() const noexcept {
  switch (reason_) {
    case Reason::changed:
    case Reason::no_memory:
    case Reason::cannot_open:
    case Reason::cannot_read:
      return false;
    default:
      return read_;
  }
}

Reason CodeFile::read(SourceFile& file) noexcept {
  if (const Reason reason = file.open(); reason != Reason::none) return reason;
  if (const Reason reason = find_device_code(file, code_); reason != Reason::none) return reason;
  if (const Reason reason = look(file); reason != Reason::none) return reason;
  return file.check();
}

Reason CodeFile::look(SourceFile& file) noexcept {
  struct Cost {
    std::uint64_t bytes;
    std::uint32_t module;
  };
  Array<Cost> order;
  for (std::uint32_t index = 0; index < code_.modules.size(); ++index) {
    CodeModule& module = code_.modules[index];
    module.kernels = Kernels::no;
    if (module.fragment) continue;
    std::uint64_t cost = UINT64_MAX;
    each_image_of(code_, module, [&](std::uint32_t i) {
      const CodeImage& image = code_.images[i];
      if (is_executable(image)) cost = std::min(cost, image::look_cost(image.compression, image.clear));
    });
    if (cost != UINT64_MAX && !order.push({cost, index})) return Reason::no_memory;
  }
  std::sort(order.begin(), order.end(), [](const Cost& a, const Cost& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.module < b.module;
  });
  Payload payload;
  for (const Cost& each : order) {
    CodeModule& module = code_.modules[each.module];
    module.kernels = Kernels::assumed;
    if (looked_at_ >= image::kMaxLook) continue;
    if (const Reason reason = has_kernels(file, payload, module, module.kernels); reason != Reason::none)
      return reason;
  }
  return Reason::none;
}

/// Any image of the module may be empty, of a part without device code or by __CUDA_ARCH__: all of them have
/// to be, before a module counts as one without kernels. The cheapest are looked at first.
Reason CodeFile::has_kernels(SourceFile& file, Payload& payload, const CodeModule& module,
                             Kernels& out) noexcept {
  images_.clear();
  bool kept = true;
  each_image_of(code_, module, [&](std::uint32_t index) {
    if (is_executable(code_.images[index])) kept = images_.push(index) && kept;
  });
  if (!kept) return Reason::no_memory;
  const auto key = [this](std::uint32_t index) {
    const CodeImage& image = code_.images[index];
    return std::tuple(image::look_cost(image.compression, image.clear), image.clear, index);
  };
  std::sort(images_.begin(), images_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (const std::uint32_t index : images_) {
    const CodeImage& image = code_.images[index];
    out = Kernels::yes;
    if (image.candidate.kind == ImageKind::tileir) return Reason::none;  // its kernels' names are not read
    Reason reason = Reason::none;
    struct Read {
      Bytes bytes;
      bool ok = false;
      explicit operator bool() const noexcept { return ok; }
      Bytes operator*() const noexcept { return bytes; }
    };
    const auto found =
        image::find_kernels(image.candidate.kind, image.compression, image.clear, [&](std::uint64_t size) {
          looked_at_ += size;
          Read read;
          reason = payload.read(file, image, read.bytes, size);
          read.ok = reason == Reason::none;
          return read;
        });
    if (found == image::HasKernels::yes || reason == Reason::unknown_compression) return Reason::none;
    if (found == image::HasKernels::unreadable) return reason != Reason::none ? reason : Reason::damaged;
  }
  out = Kernels::no;
  return Reason::none;
}

CodeFile::Choice CodeFile::choose(const CodeModule& module, const Platform& platform) noexcept {
  Choice out;
  candidates_.clear();
  each_image_of(code_, module, [&](std::uint32_t index) {
    const CodeImage& image = code_.images[index];
    out.executable = out.executable || is_executable(image);
    if (!image::driver_reads(image.compression, platform.driver)) return;
    if (!candidates_.push(image.candidate)) reason_ = Reason::no_memory;
  });
  out.selection = select_image({candidates_.begin(), candidates_.size()}, platform, code_.packaging);
  if (out.runs()) out.image = candidates_[out.selection.index];
  out.linked = !out.runs() && std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& each) {
    return image::links_for(each, platform.device);
  });
  return out;
}

bool CodeFile::takes(const Choice& choice, const CodeImage& image, const Platform& platform) const noexcept {
  return choice.runs() && image.candidate == choice.image &&
         image::driver_reads(image.compression, platform.driver);
}

Reason CodeFile::list_kernels(SourceFile& file, Payload& payload, std::uint32_t index) noexcept {
  CodeImage& image = code_.images[index];
  if (image.listed || !is_executable(image)) return Reason::none;
  Bytes clear;
  const Reason reason = payload.read(file, image, clear);
  if (reason == Reason::unknown_compression) {
    image.listed = unlisted_ = true;
    return Reason::none;
  }
  if (reason != Reason::none) return reason;
  bool kept = true;
  const bool whole = image::each_kernel_name(image.candidate.kind, clear, [&](std::string_view name) {
    const std::uint64_t hash = content_hash(bytes_of(name));
    kept = names_.size() < kMaxNames &&
           names_.push({static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32U), index});
    return kept;
  });
  if (!kept) return names_.size() < kMaxNames ? Reason::no_memory : Reason::too_large;
  if (!whole) return Reason::damaged;
  image.listed = true;
  return Reason::none;
}

Reason CodeFile::list_chosen(SourceFile& file, const Platform& platform) noexcept {
  if (all_listed_) return Reason::none;
  for (const Platform& known : listed_for_)
    if (same(known, platform)) return Reason::none;
  Payload payload;
  Reason reason = Reason::none;
  for (const CodeModule& module : code_.modules) {
    const Choice choice = choose(module, platform);
    if (!choice.runs()) continue;
    each_image_of(code_, module, [&](std::uint32_t index) {
      if (reason == Reason::none && takes(choice, code_.images[index], platform))
        reason = list_kernels(file, payload, index);
    });
    if (reason != Reason::none) return reason;
  }
  std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) { return a.hash() < b.hash(); });
  if (const Reason now = file.check(); now != Reason::none) return now;
  return listed_for_.push(platform) ? Reason::none : Reason::no_memory;
}

Reason CodeFile::list_all(SourceFile& file) noexcept {
  if (all_listed_) return Reason::none;
  Payload payload;
  for (std::uint32_t index = 0; index < code_.images.size(); ++index)
    if (const Reason reason = list_kernels(file, payload, index); reason != Reason::none) return reason;
  std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) { return a.hash() < b.hash(); });
  if (const Reason now = file.check(); now != Reason::none) return now;
  all_listed_ = true;
  return Reason::none;
}

template <class InScope>
void CodeFile::fill_have(const InScope& in_scope, kshim_answer& out) const noexcept {
  ImageNames names;
  for (const CodeModule& module : code_.modules)
    if (in_scope(module))
      each_image_of(code_, module, [&](std::uint32_t index) { names.add(code_.images[index].candidate); });
  names.write(out.have);
}

/// Counts the modules by what the driver takes of them. True: LTO-IR is there for this GPU, and nothing else.
bool CodeFile::sort_modules(const Platform& platform, Alike (&out)[3]) noexcept {
  bool linked = false;
  for (Alike& each : out) each = {.from = each.from};
  for (std::size_t index = 0; index < code_.modules.size(); ++index) {
    const CodeModule& module = code_.modules[index];
    if (module.kernels == Kernels::no) continue;
    const Choice choice = choose(module, platform);
    if (choice.linked) {
      linked = true;
      continue;
    }
    Alike& alike = out[static_cast<std::size_t>(choice.selection.choice)];
    if (index < alike.from) continue;
    if (alike.count++ == 0) {
      alike.rule = choice.selection.rule;
      alike.image = choice.image;
    }
    alike.confirmed = alike.confirmed || module.kernels == Kernels::yes;
  }
  return linked;
}

/// An answer rests on no module that may have no kernels.
Reason CodeFile::confirm(SourceFile& file, const Platform& platform, Alike (&alike)[3]) noexcept {
  Payload payload;
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    if (alike[wanted].count == 0 || alike[wanted].confirmed) continue;
    std::size_t index = 0;
    for (; index < code_.modules.size(); ++index) {
      CodeModule& module = code_.modules[index];
      if (module.kernels != Kernels::assumed) continue;
      const Choice choice = choose(module, platform);
      if (choice.linked || static_cast<std::size_t>(choice.selection.choice) != wanted) continue;
      if (module.confirmed == Kernels::assumed)
        if (const Reason reason = has_kernels(file, payload, module, module.confirmed);
            reason != Reason::none)
          return reason;
      if (module.confirmed == Kernels::yes) break;
    }
    alike[wanted].from = index;
  }
  return file.check();
}

Reason CodeFile::answer_any(SourceFile& file, const Platform& platform, kshim_answer& out) noexcept {
  Alike alike[3];
  bool linked = sort_modules(platform, alike);
  if (std::any_of(std::begin(alike), std::end(alike),
                  [](const Alike& each) { return each.count != 0 && !each.confirmed; })) {
    if (const Reason reason = confirm(file, platform, alike); reason != Reason::none) return reason;
    linked = sort_modules(platform, alike);
  }
  const Alike& sass = alike[static_cast<std::size_t>(image::Choice::sass)];
  const Alike& jit = alike[static_cast<std::size_t>(image::Choice::jit)];
  const Alike& none = alike[static_cast<std::size_t>(image::Choice::none)];
  out.sass = sass.count;
  out.jit = jit.count;
  out.lacking = none.count;
  out.modules = sass.count + jit.count + none.count;
  const Alike& runs = sass.count != 0 ? sass : jit;
  if (runs.count != 0) name_image(runs.image, out);
  fill_have([](const CodeModule& module) { return module.kernels != Kernels::no; }, out);
  if (out.sass != 0) {
    say(KSHIM_CODE_SASS, text_of(runs.rule), out);
  } else if (out.jit != 0) {
    say(KSHIM_CODE_JIT, text_of(runs.rule), out);
  } else if (code_.unknown_kind) {
    return Reason::unknown_image_kind;
  } else if (out.lacking != 0) {
    say(KSHIM_CODE_NONE, text_of(none.rule), out);
  } else {
    const bool any = std::any_of(code_.images.begin(), code_.images.end(), is_executable);
    const ReasonText reason = code_.images.empty() ? text_of(Reason::no_device_code)
                              : any && !linked     ? text_of(Reason::no_kernels)
                                                   : text_of(image::Rule::ltoir_not_executable);
    say(KSHIM_CODE_NONE, reason, out);
  }
  return Reason::none;
}

void CodeFile::find_holding(std::uint64_t hash) noexcept {
  holding_.clear();
  const Name* at =
      std::lower_bound(names_.begin(), names_.end(), hash,
                       [](const Name& each, std::uint64_t wanted) { return each.hash() < wanted; });
  for (; at != names_.end() && at->hash() == hash; ++at)
    if (!holding_.push(at->image)) reason_ = Reason::no_memory;
  // Not by the default order: libc++ has that one in its library.
  std::sort(holding_.begin(), holding_.end(), [](std::uint32_t a, std::uint32_t b) { return a < b; });
}

bool CodeFile::is_holding(std::uint32_t image) const noexcept {
  return std::binary_search(holding_.begin(), holding_.end(), image);
}

Reason CodeFile::answer_kernel(SourceFile& file, const Question& question, std::uint64_t hash,
                               kshim_answer& out) noexcept {
  const auto holds = [this](const CodeModule& module) {
    const std::uint32_t* first = std::lower_bound(holding_.begin(), holding_.end(), module.first);
    bool found = first != holding_.end() && *first - module.first < module.count;
    for (std::uint32_t i = 0; !found && i < module.part_count; ++i)
      found = is_holding(code_.parts[module.first_part + i]);
    return found;
  };
  // Images that the driver does not take are decompressed only where none of those that it takes has the
  // kernel.
  for (const bool all : {false, true}) {
    const Reason reason = all ? list_all(file) : list_chosen(file, question.platform);
    if (reason != Reason::none) return reason;
    find_holding(hash);
    ReasonText runs{};
    ReasonText lacks = text_of(Reason::kernel_not_found);
    out = {};
    for (const CodeModule& module : code_.modules) {
      if (!holds(module)) continue;
      const Choice choice = choose(module, question.platform);
      bool served = false;
      each_image_of(code_, module, [&](std::uint32_t index) {
        served = served || (is_holding(index) && takes(choice, code_.images[index], question.platform));
      });
      if (!served) {
        if (out.lacking++ == 0)
          lacks = choice.runs() ? text_of(Reason::kernel_missing_from_image) : text_of(choice.selection.rule);
        continue;
      }
      const bool sass = choice.selection.choice == image::Choice::sass;
      if ((sass ? out.sass : out.sass + out.jit) == 0) {
        runs = text_of(choice.selection.rule);
        name_image(choice.image, out);
      }
      ++(sass ? out.sass : out.jit);
    }
    if (out.sass + out.jit != 0) {
      // How many others hold the kernel depends on what was listed before.
      out.lacking = 0;
      out.modules = out.sass + out.jit;
      fill_have(holds, out);
      say(out.sass != 0 ? KSHIM_CODE_SASS : KSHIM_CODE_JIT, runs, out);
      return Reason::none;
    }
    if (!all) continue;
    if (code_.unknown_kind) return Reason::unknown_image_kind;
    if (unlisted_) return Reason::unknown_compression;
    out.modules = out.lacking;
    fill_have(holds, out);
    if (code_.images.empty()) lacks = text_of(Reason::no_device_code);
    say(KSHIM_CODE_NONE, lacks, out);
  }
  return Reason::none;
}

void CodeFile::answer(SourceFile& file, const Question& question, kshim_answer& out) noexcept {
  if (!read_) {
    reason_ = read(file);
    read_ = true;
  }
  if (reason_ != Reason::none) return say_unknown(reason_, out);
  const std::uint64_t hash = question.kernel.empty() ? 0 : content_hash(bytes_of(question.kernel));
  for (std::size_t i = 0; i < std::min(known_count_, kMaxKnown); ++i) {
    if (known_[i].kernel != hash || !same(known_[i].platform, question.platform)) continue;
    out = known_[i].answer;
    return;
  }
  out = {};
  const auto* gpu = image::find_compute_capability(question.platform.device);
  const Reason reason = question.kernel.empty() ? answer_any(file, question.platform, out)
                                                : answer_kernel(file, question, hash, out);
  if (reason_ == Reason::none) reason_ = reason;
  // These two reasons depend on the question; other questions about the file may have an answer.
  if (reason == Reason::unknown_image_kind || reason == Reason::unknown_compression) reason_ = Reason::none;
  if (reason != Reason::none) return say_unknown(reason, out);
  if (reason_ != Reason::none) return say_unknown(reason_, out);
  if (out.code != KSHIM_CODE_NONE && gpu != nullptr && question.platform.driver.known() &&
      question.platform.driver < gpu->first_toolkit) {
    out.sass = out.jit = 0;
    out.lacking = out.modules;
    out.image[0] = '\0';
    say(KSHIM_CODE_NONE, text_of(Reason::driver_too_old), out);
  }
  known_[known_count_++ % kMaxKnown] = {hash, question.platform, out};
}

}  // namespace kshim::query
