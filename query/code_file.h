// SPDX-License-Identifier: Apache-2.0
// What is known of one file: its device code, the kernels of those images that a question needed, the last
// answers.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/query.h"
#include "query/device_code.h"
#include "query/payload.h"

namespace kshim::query {

struct Question {
  std::string_view kernel;  ///< mangled; empty: any
  image::Platform platform;
};

class CodeFile {
 public:
  /// All of `out` but `size`. `file` is opened where what is known does not suffice.
  void answer(SourceFile& file, const Question& question, kshim_answer& out) noexcept;
  std::size_t bytes() const noexcept;
  /// False: asked again, the answer may be another, even if the file stays as it is.
  bool is_final() const noexcept;

 private:
  /// What the driver takes of a module.
  struct Choice {
    image::Selection selection;
    image::Candidate image;
    bool executable = false;  ///< false: LTO-IR alone, which is for a linker
    bool linked = false;      ///< nothing runs, and LTO-IR is there for this GPU
    bool runs() const noexcept { return selection.choice != image::Choice::none; }
  };
  /// A kernel's name, by a hash of 64 bits, in an image.
  struct Name {
    std::uint32_t low, high, image;
    std::uint64_t hash() const noexcept { return std::uint64_t{high} << 32U | low; }
  };
  struct Known {
    std::uint64_t kernel = 0;  ///< hash
    image::Platform platform;
    kshim_answer answer{};
  };
  static constexpr std::size_t kMaxKnown = 16;

  Reason read(SourceFile& file) noexcept;
  Choice choose(const CodeModule& module, const image::Platform& platform) noexcept;
  bool takes(const Choice& choice, const CodeImage& image, const image::Platform& platform) const noexcept;
  /// Sees which modules have kernels, whatever the question is.
  Reason look(SourceFile& file) noexcept;
  Reason has_kernels(SourceFile& file, Payload& payload, const CodeModule& module, Kernels& out) noexcept;
  Reason list_kernels(SourceFile& file, Payload& payload, std::uint32_t index) noexcept;
  Reason list_chosen(SourceFile& file, const image::Platform& platform) noexcept;
  Reason list_all(SourceFile& file) noexcept;
  Reason answer_any(SourceFile& file, const image::Platform& platform, kshim_answer& out) noexcept;
  Reason answer_kernel(SourceFile& file, const Question& question, std::uint64_t hash,
                       kshim_answer& out) noexcept;
  /// What the modules are for a platform, by image::Choice.
  struct Alike {
    std::uint64_t count = 0;
    bool confirmed = false;  ///< one of them has kernels
    std::size_t from = 0;    ///< those before it have none
    image::Rule rule{};      ///< of the first
    image::Candidate image{};
  };
  bool sort_modules(const image::Platform& platform, Alike (&out)[3]) noexcept;
  Reason confirm(SourceFile& file, const image::Platform& platform, Alike (&alike)[3]) noexcept;
  void find_holding(std::uint64_t hash) noexcept;
  bool is_holding(std::uint32_t image) const noexcept;
  template <class InScope>
  void fill_have(const InScope& in_scope, kshim_answer& out) const noexcept;

  bool read_ = false;
  bool all_listed_ = false;
  bool unlisted_ = false;  ///< some image is compressed in a way that is not known
  Reason reason_ = Reason::none;
  DeviceCode code_;
  Array<Name> names_;                   ///< by hash
  Array<image::Platform> listed_for_;   ///< platforms whose chosen images are in names_
  Array<image::Candidate> candidates_;  ///< of choose(), kept for its memory
  Array<std::uint32_t> images_;         ///< of has_kernels(), too
  std::uint64_t looked_at_ = 0;         ///< bytes, decompressed by has_kernels()
  Array<std::uint32_t> holding_;        ///< images that have the kernel in question, ascending
  Known known_[kMaxKnown];
  std::size_t known_count_ = 0;  ///< ever
};

}  // namespace kshim::query
