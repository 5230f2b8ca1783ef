// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker reads of an ELF file before it runs: its interpreter and its dynamic section.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kshim/base/bytes.h"

namespace kshim::analysis {

struct ElfFacts {
  bool same_class = true;   ///< 64-bit, of this machine; if not, nothing else is known
  bool is_library = false;  ///< what dlopen takes and execve does not
  std::string loader;       ///< PT_INTERP; empty: static, or a library
  std::string soname;
  std::vector<std::string> needed;
  std::vector<std::string> rpath;    ///< DT_RPATH, which DT_RUNPATH switches off
  std::vector<std::string> runpath;  ///< DT_RUNPATH
  bool names_dlmopen = false;        ///< imports dlmopen
  bool defines_dlsym = false;        ///< stands in for dlsym, as the shim does
};

/// nullopt for what is no ELF file, or one that the kernel refuses.
std::optional<ElfFacts> elf_facts(Bytes file);
std::optional<ElfFacts> elf_facts(const std::filesystem::path& file);

/// PyTorch's extensions, whose builder alone reads TORCH_CUDA_ARCH_LIST, by what they are linked with.
bool links_torch(const std::optional<ElfFacts>& file);
/// And by the place: beside PyTorch's own files, or in its cache of extensions built on the fly.
bool lies_beside_torch(std::string_view path);

}  // namespace kshim::analysis
