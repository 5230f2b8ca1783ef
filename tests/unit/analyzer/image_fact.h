// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "analyzer/diagnose/facts.h"
#include "kshim/image/arch.h"
#include "tests/support/command_names.h"

namespace kshim::test {

/// "sm_75", "compute_75:9.0", "lto_90", "sm_70/zstd".
inline ImageFact fact(std::string_view word) {
  ImageFact out;
  if (const std::size_t slash = word.find('/'); slash != std::string_view::npos) {
    out.compression = image::Compression::zstd;
    word = word.substr(0, slash);
  }
  const std::size_t colon = word.find(':');
  if (colon != std::string_view::npos) out.candidate.isa = *image::parse_version(word.substr(colon + 1));
  word = word.substr(0, colon);
  out.candidate.kind = word.starts_with("sm_")    ? image::ImageKind::cubin
                       : word.starts_with("lto_") ? image::ImageKind::ltoir
                                                  : image::ImageKind::ptx;
  out.candidate.arch = *image::parse_arch(word);
  return out;
}

}  // namespace kshim::test
