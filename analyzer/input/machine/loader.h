// SPDX-License-Identifier: Apache-2.0
// Which file the dynamic linker of the machine would load for a name, and why that one: ld.so(8), "dlopen and
// the order of search".
#pragma once

#include "analyzer/device_code/elf_file.h"
#include "analyzer/input/machine/machine.h"

namespace kshim::doctor {

struct FoundFile {
  std::string path;  ///< as the linker opens it
  std::string real;  ///< without links: libcuda.so.580.82.07
  std::string how;   ///< "LD_LIBRARY_PATH", "ld.so.cache", "RUNPATH of /opt/x/libfoo.so"
};

/// The libraries of /etc/ld.so.cache, by soname; the first of each name that a 64-bit program of this machine
/// takes. Empty for a file of another format.
std::map<std::string, std::string> read_cache(std::string_view bytes);

class Loader {
 public:
  explicit Loader(const Machine& machine);

  /// For a library that `by` (a file, or empty: a program without search paths of its own) asks for.
  std::optional<FoundFile> find(std::string_view name, const std::string& by = {},
                                const analysis::ElfFacts* asking = nullptr) const;
  /// Every folder of LD_LIBRARY_PATH and of the machine's own where there is a file of that name, as find()
  /// would come by them.
  std::vector<FoundFile> all(std::string_view name) const;
  const std::vector<std::string>& library_path() const noexcept { return library_path_; }

 private:
  std::optional<FoundFile> in_folder(std::string_view folder, std::string_view name, std::string how) const;
  bool fits(std::string_view path) const;
  std::string expand(std::string text, const std::string& by) const;

  const Machine& machine_;
  std::vector<std::string> library_path_;
  std::map<std::string, std::string> cache_;
};

}  // namespace kshim::doctor
