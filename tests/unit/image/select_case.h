// SPDX-License-Identifier: Apache-2.0
// One line of a table about select_image, written as people write it.
#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kshim/image/select.h"

namespace kshim::image::table {

/// "sm_90a", "lto_75", "compute_80@7.0" with a PTX ISA, or "tile_100@13.4" with a bytecode version.
inline Candidate candidate_of(std::string_view text) {
  const std::size_t at = text.find('@');
  Candidate out;
  out.kind = text.starts_with("compute_") ? ImageKind::ptx
             : text.starts_with("lto_")   ? ImageKind::ltoir
             : text.starts_with("tile_")  ? ImageKind::tileir
                                          : ImageKind::cubin;
  const auto arch = parse_arch(text.substr(0, at));
  EXPECT_TRUE(arch.ok()) << text;
  out.arch = *arch;
  if (at != std::string_view::npos) out.isa = parse_version(text.substr(at + 1)).value_or({});
  return out;
}

inline std::vector<Candidate> candidates_of(const char* text) {
  std::vector<Candidate> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) out.push_back(candidate_of(word));
  return out;
}

/// "8.6 driver=12.4 CUDA_FORCE_PTX_JIT no-compiler"; a driver that is not named is unknown.
inline Platform platform_of(const char* text) {
  Platform out;
  std::istringstream words(text);
  std::string word;
  words >> word;
  const auto device = parse_arch(word);
  EXPECT_TRUE(device.ok()) << text;
  out.device = device->cc;
  while (words >> word) {
    if (word.starts_with("driver="))
      out.driver = parse_version(std::string_view(word).substr(7)).value_or({});
    else if (word == "CUDA_FORCE_PTX_JIT")
      out.jit.force_ptx_jit = true;
    else if (word == "CUDA_DISABLE_PTX_JIT")
      out.jit.disable_ptx_jit = true;
    else if (word == "CUDA_FORCE_JIT")
      out.jit.force_jit = true;
    else if (word == "CUDA_DISABLE_JIT")
      out.jit.disable_jit = true;
    else if (word == "no-compiler")
      out.jit.compiler_present = false;
    else
      ADD_FAILURE() << "unknown word " << word << " in " << text;
  }
  return out;
}

/// `rule` decides about the image; `instead_of` is the rule that decides about its neighbor in the table and
/// must not decide here.
struct Judged {
  const char* image;
  const char* platform;
  bool fits;
  Rule rule;
  Rule instead_of;
};

/// What is taken from a container: an index into `images`, or the error.
struct Chosen {
  const char* images;
  const char* platform;
  Choice choice;
  int index_or_error;
  Rule rule;
  Rule instead_of;
  Packaging packaging = Packaging::fatbin;
};

extern const std::vector<Judged> kJudged;
extern const std::vector<Chosen> kChosen;

}  // namespace kshim::image::table
