// SPDX-License-Identifier: Apache-2.0
// The expected architectures of files, and the check: `kshim scan --expect`, [tool.kshim], kshim.toml.
#pragma once

#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

// Lists of architectures as people and build systems write them: which device code a file is meant to have.
//   7.5 8.0 9.0a 12.0+PTX                            torch: SASS, and PTX where it says so
//   75-real;80;120f;121-virtual                      CMake: SASS, both, both, PTX
//   sm_90a compute_120 lto_90                        nvcc's names: SASS, PTX, LTO-IR
//   -gencode arch=compute_80,code=[sm_80,compute_80] nvcc's options, -arch=sm_90 (both) and -code among them

/// One kind of code for one architecture.
struct Entry {
  image::ImageKind kind = image::ImageKind::cubin;
  image::Arch arch;
  auto operator<=>(const Entry&) const = default;
};
using ArchList = std::vector<Entry>;  ///< ascending, each once

/// Where a text begins: a file, line and column, or an option or variable, whose text begins at column 1.
struct TextOrigin {
  std::string name;
  unsigned line = 0;  ///< 0: of an option or variable
  unsigned column = 1;
  std::string text() const;  ///< "kshim.toml:3:10", "--expect, character 5"
};

/// `$NAME` is the variable's value, `@FILE` what the file holds, # and what follows it left out. UserError
/// that names the place for an entry that is not an architecture, and for an empty list.
ArchList parse_arch_list(std::string_view text, const TextOrigin& origin);
/// One GPU's architecture, such as 8.0 or sm_90. UserError as above.
image::ComputeCapability parse_gpu(std::string_view text, const TextOrigin& origin);
std::string name_of(const Entry& entry);  ///< sm_90a, compute_120
std::vector<std::string> names_of(const ArchList& list);
/// As torch writes it where it can, else nvcc's names: parse_arch_list() reads either back.
std::string to_text(const ArchList& list);
[[noreturn]] void refuse(const TextOrigin& at, std::string_view what);

/// As what an architecture of the list counts.
enum class Form : std::uint8_t { written, sass, ptx, either };

/// What files have to have. A file's rule inherits unset fields from the default rule.
struct Rule {
  std::string pattern = {};  ///< empty: all files. With / of the path, else of the file's name
  std::string reason = {};   ///< why these files differ
  std::string source = {};   ///< where it is written: "pyproject.toml:12"
  ArchList list = {};
  std::optional<bool> exactly = {};
  std::optional<Form> form = {};
  std::optional<image::ComputeCapability> ptx_floor = {};  ///< GPUs from this on find PTX
  bool skip = false;
};

/// The most bytes that something may take.
struct Limit {
  enum class Of : std::uint8_t { file, wheel };  ///< wheel: what was named, as it lies on disk
  Of of = Of::file;
  std::uint64_t bytes = 0;
  std::string_view text() const;  ///< "file", "wheel"
};

struct Expectation {
  Rule all;
  std::vector<Rule> files;  ///< the last that matches a file holds
  std::vector<Limit> budget;
  bool asks() const { return !all.list.empty() || all.ptx_floor || !files.empty() || !budget.empty(); }
};

/// [tool.kshim] of a pyproject.toml, else the whole file. UserError with file, line and column.
Expectation read_config(const std::string& path);
/// ./kshim.toml, else ./pyproject.toml where it has [tool.kshim]; empty where there is none.
std::string find_config();
/// "50M", "1.5 GB", "300MiB" or `file=50M,wheel=300M`. A size alone is a file's.
std::vector<Limit> parse_budget(std::string_view text, const TextOrigin& origin);
Limit parse_limit(std::string_view of, std::string_view size, const TextOrigin& origin);

/// Fills `scan.expected` and adds a finding for each file that is not as expected, each pattern and path
/// without device code, each budget that is exceeded.
void hold(Scan& scan, const Expectation& expectation, const std::vector<std::filesystem::path>& paths);

}  // namespace kshim::verbs
