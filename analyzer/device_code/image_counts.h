// SPDX-License-Identifier: Apache-2.0
// How often a file has images of which architecture.
#pragma once
#include <cstdint>
#include <tuple>
#include <vector>

#include "analyzer/device_code/device_code.h"

namespace kshim::analysis {

/// How often an architecture occurs in a file.
struct ImageCount {
  image::Candidate candidate;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;   ///< uncompressed
  std::uint64_t stored = 0;  ///< in the file
};

/// What tells images apart for a driver. Sorts cubins first, each kind by architecture.
constexpr auto program_of(const image::Candidate& image) {
  return std::tuple(image.kind != image::ImageKind::cubin, image.kind, image.arch, image.isa);
}
using Program = decltype(program_of(image::Candidate{}));

/// Whether a driver that takes one takes the other as well: same kind, architecture and PTX ISA.
constexpr bool same_program(const image::Candidate& a, const image::Candidate& b) {
  return program_of(a) == program_of(b);
}

/// Images that a driver or a linker can take as they are, by kind, architecture and ISA; cubins first.
std::vector<ImageCount> count_images(const DeviceCode& code);

}  // namespace kshim::analysis
