// SPDX-License-Identifier: Apache-2.0
// A file that a report names, read again: which images a module of it holds, which kernels are in each image,
// what built it. Used only where path and build id agree with the report.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analyzer/model/mapped_file.h"
#include "kshim/image/elf.h"
#include "kshim/image/image.h"
#include "kshim/image/select.h"

namespace kshim::analysis {

/// How far to read: headers alone, or payloads too, which may have to be decompressed.
enum class Depth : std::uint8_t { headers, kernels };

/// One image of a module with what is inside.
struct FileImage {
  image::Candidate candidate;
  image::Compression compression = image::Compression::none;
  std::uint64_t bytes = 0;           ///< uncompressed
  std::vector<std::string> kernels;  ///< mangled
  bool kernels_read = false;
  image::Version toolkit;  ///< that built it; unknown where the image does not say
};

struct FileModule {
  std::vector<FileImage> images;
  std::string damage;  ///< empty, or what is wrong: "the fatbin ends before ..."
  bool has_kernels() const;
};

/// How often an architecture occurs in a file.
struct ImageCount {
  image::Candidate candidate;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class ObjectFile {
 public:
  /// The file, or a clause that says why it cannot be used. An empty build id fits every file without one: a
  /// host ELF, or a bare fatbin, cubin or PTX, which is one module at address 0.
  static std::variant<ObjectFile, std::string> open(const std::string& path, std::string_view build_id);

  /// The module whose fatbin (or bare image) lies at a link-time virtual address, relocatable parts included.
  FileModule module_at(std::uint64_t address, Depth depth = Depth::kernels) const;
  /// Where the file's modules lie, for module_at().
  std::vector<std::uint64_t> module_addresses() const;
  /// The module that holds a kernel, found by reading every image; empty where none does or the file is too
  /// large for that.
  FileModule module_with_kernel(const std::string& kernel) const;
  /// The module that has kernels, where only one has; else empty. Nearly every nvcc program has a fatbin
  /// without kernels.
  FileModule only_module_with_kernels() const;
  /// Every architecture in the file's fatbin sections, without reading payloads.
  std::vector<ImageCount> image_counts() const;
  std::uint64_t fatbin_count() const;
  /// The function that holds a link-time address, mangled; empty where no symbol covers it.
  std::string symbol_at(std::uint64_t address) const;
  bool is_shared_library() const;
  /// Linked from relocatable device code: nvcc -rdc=true.
  bool has_relocatable_code() const;
  /// A fatbin, cubin or PTX without a host program around it.
  bool is_bare() const { return bare_; }

 private:
  ObjectFile(MappedFile file, image::ElfReader elf, bool bare)
      : file_(std::move(file)), elf_(elf), bare_(bare) {}
  FileModule read_module(Bytes bytes, std::uint64_t address, Depth depth) const;
  /// The pointer stored at an address: from its relocation in position-independent files, else in place. 0 =
  /// none.
  std::uint64_t pointer_at(std::uint64_t address) const;
  /// Addresses of the fatbins in a section.
  std::vector<std::uint64_t> fatbins_of(std::string_view section) const;
  std::vector<std::uint64_t> relocatable_parts(std::uint64_t fatbin) const;
  MappedFile file_;
  image::ElfReader elf_;  ///< empty for a bare file
  bool bare_;
};

}  // namespace kshim::analysis
