// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker reads of a file before it runs: the dynamic section, through the program headers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::doctor {

struct DynamicFile {
  bool same_class = true;   ///< 64-bit, of this machine
  bool is_library = false;  ///< what dlopen takes and execve does not
  std::string loader;       ///< PT_INTERP
  std::string soname;
  std::vector<std::string> needed;
  std::vector<std::string> rpath;    ///< DT_RPATH, which DT_RUNPATH switches off
  std::vector<std::string> runpath;  ///< DT_RUNPATH
  bool names_dlmopen = false;        ///< imports dlmopen
  bool defines_dlsym = false;        ///< stands in for dlsym, as the shim does
};

/// nullopt for what is no ELF file, or a damaged one.
std::optional<DynamicFile> read_dynamic(const std::filesystem::path& file);

}  // namespace kshim::doctor
