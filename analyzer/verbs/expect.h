// SPDX-License-Identifier: Apache-2.0
// What files are meant to have, and whether they do: `kshim scan --expect`, [tool.kshim], kshim.toml.
#pragma once

#include "analyzer/verbs/arch_list.h"
#include "analyzer/verbs/scan.h"

namespace kshim::expect {

enum class Form : std::uint8_t {
  written,
  sass,
  ptx,
  either
};  ///< as what an architecture of the list counts

/// What files have to have. A rule of a file takes what it does not say from the rule of all.
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
  enum class Of : std::uint8_t { file, wheel, arch };  ///< wheel: what was named, as it lies on disk
  Of of = Of::file;
  image::Arch arch = {};  ///< of `arch`: all its code in one wheel
  std::uint64_t bytes = 0;
  std::string text() const;  ///< "file", "wheel", "9.0a"
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
/// "50M", "1.5 GB", "300MiB" or `file=50M,wheel=300M,9.0a=40M`. A size alone is a file's.
std::vector<Limit> parse_budget(std::string_view text, const Origin& origin);
std::uint64_t parse_size(std::string_view text, const Origin& origin);
Limit parse_limit(std::string_view of, std::string_view size, const Origin& origin);

/// Fills `scan.expected` and adds a finding for each file that is not as expected, each pattern and path
/// without device code, each budget that is exceeded.
void hold(scan::Scan& scan, const Expectation& expectation, const std::vector<std::filesystem::path>& paths);
/// A first kshim.toml: what the files have, those that differ from most of them with rules of their own.
std::string config_of(const scan::Scan& scan, bool pyproject);

}  // namespace kshim::expect
