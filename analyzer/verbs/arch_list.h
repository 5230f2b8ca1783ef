// SPDX-License-Identifier: Apache-2.0
// Lists of architectures as people and build systems write them: which device code a file is meant to have.
//   7.5 8.0 9.0a 12.0+PTX                            torch: SASS, and PTX where it says so
//   75-real;80;120f;121-virtual                      CMake: SASS, both, both, PTX
//   sm_90a compute_120 lto_90                        nvcc's names: SASS, PTX, LTO-IR
//   -gencode arch=compute_80,code=[sm_80,compute_80] nvcc's options, -arch=sm_90 (both) and -code among them
#pragma once
#include <string>
#include <vector>

#include "kshim/image/arch.h"

namespace kshim::expect {

/// One kind of code for one architecture.
struct Entry {
  image::ImageKind kind = image::ImageKind::cubin;
  image::Arch arch;
  auto operator<=>(const Entry&) const = default;
};
using ArchList = std::vector<Entry>;  ///< ascending, each once

/// Where a text begins: a file, line and column, or an option or variable, whose text begins at column 1.
struct Origin {
  std::string name;
  unsigned line = 0;  ///< 0: of an option or variable
  unsigned column = 1;
  std::string text() const;  ///< "kshim.toml:3:10", "--expect, character 5"
};

/// `$NAME` is the variable's value, `@FILE` what the file holds, # and what follows it left out. UserError
/// that names the place for what is no architecture, and for an empty list.
ArchList parse_arch_list(std::string_view text, const Origin& origin);
/// One GPU's architecture, such as 8.0 or sm_90. UserError as above.
image::ComputeCapability parse_gpu(std::string_view text, const Origin& origin);
std::string name_of(const Entry& entry);  ///< sm_90a, compute_120
std::vector<std::string> names_of(const ArchList& list);
/// As torch writes it where it can, else nvcc's names: parse_arch_list() reads either back.
std::string to_text(const ArchList& list);
[[noreturn]] void refuse(const Origin& at, std::string_view what);

}  // namespace kshim::expect
