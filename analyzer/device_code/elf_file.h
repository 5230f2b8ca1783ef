// SPDX-License-Identifier: Apache-2.0
// What the kernel and ld.so will make of an executable file, as far as LD_PRELOAD is concerned.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

namespace kshim::device_code {

struct Executable {
  enum class Kind { elf, script, other };
  Kind kind = Kind::other;
  bool same_class = true;     ///< 64-bit and of this machine
  std::string loader;         ///< PT_INTERP; empty: static
  std::string interpreter;    ///< of a script: what follows #!
  std::string argument;       ///< of a script: the interpreter's argument
  bool gains_rights = false;  ///< setuid, setgid or file capabilities that make ld.so run in secure mode
  bool wants_asan = false;    ///< linked with AddressSanitizer's shared runtime
};

/// The first file of that name in PATH that `accept` takes.
std::optional<std::filesystem::path> find_in_path(
    const std::string& name, const std::function<bool(const std::filesystem::path&)>& accept);
/// The executable file of that name in PATH, or the name itself when it has a slash; nullopt when there is
/// none.
std::optional<std::filesystem::path> search_path(const std::string& name);

/// nullopt when the file cannot be read.
std::optional<Executable> inspect(const std::filesystem::path& path);

/// The file that runs in the end, whose path `path` becomes: through script interpreters, and through
/// `env NAME` in them. nullopt where there is none. `look`: inspect(); `search`: a name in PATH, empty where
/// it is not there.
std::optional<Executable> follow_scripts(
    std::string& path, std::vector<std::string>& scripts,
    const std::function<std::optional<Executable>(const std::string&)>& look,
    const std::function<std::string(const std::string&)>& search);

/// Why LD_PRELOAD has no effect in a process of this file, as a clause ("it is statically linked, ...");
/// empty when it should have.
std::string blind_reason(const std::filesystem::path& path);
/// The same for a file that is no script.
std::string blind_reason(const Executable& executable);

/// Whether preloading into this program would harm it: a musl loader stops on what it cannot resolve, and a
/// loader of another ELF class complains on the program's stderr.
bool must_not_preload(const std::filesystem::path& path);

/// Whether the program brings AddressSanitizer's shared runtime.
bool wants_asan(const std::filesystem::path& path);

// What the dynamic linker reads of an ELF file before it runs: its interpreter and its dynamic section.

struct ElfFacts {
  bool same_class = true;   ///< 64-bit, of this machine; if not, nothing else is known
  bool is_library = false;  ///< what dlopen takes and execve does not
  std::string loader;       ///< PT_INTERP; empty: static, or a library
  std::string soname;
  std::vector<std::string> needed;
  std::vector<std::string> rpath;    ///< DT_RPATH, which DT_RUNPATH switches off
  std::vector<std::string> runpath;  ///< DT_RUNPATH
  bool defines_dlsym = false;        ///< stands in for dlsym, as the shim does
};

/// nullopt for anything but an ELF file, and for one that the kernel refuses.
std::optional<ElfFacts> elf_facts(Bytes file);
std::optional<ElfFacts> elf_facts(const std::filesystem::path& file);

/// PyTorch's extensions, whose builder alone reads TORCH_CUDA_ARCH_LIST, by what they are linked with.
bool links_torch(const std::optional<ElfFacts>& file);
/// And by the place: beside PyTorch's own files, or in its cache of extensions built on the fly.
bool lies_beside_torch(std::string_view path);

}  // namespace kshim::device_code
