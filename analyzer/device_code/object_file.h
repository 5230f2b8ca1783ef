// SPDX-License-Identifier: Apache-2.0
// A file that a report names, read again: which images a module of it holds, which kernels are in each image,
// what built it. Used only where path and build id agree with the report.
#pragma once

#include "analyzer/device_code/device_code_host.h"
#include "analyzer/device_code/image_contents.h"
#include "analyzer/device_code/mapped_file.h"

namespace kshim::device_code {

// Modules of a file that were read: a thousand reports of one run ask for the same ones, and each takes a
// decompression.

/// Up to 256 modules of a file, and 8 MiB of names in them.
class ModuleMemory {
 public:
  enum class By : std::uint8_t { address, kernel, alone };
  using Key = std::pair<By, std::string>;

  template <class Read>
  FileModule get(By by, std::string name, Read&& read) {
    const Key key(by, std::move(name));
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    FileModule module = read();
    const std::size_t size = size_of(module) + key.second.size();
    if (known_.size() < kMax && bytes_ + size <= kMaxBytes) {
      bytes_ += size;
      known_.emplace(key, module);
    }
    return module;
  }

 private:
  static constexpr std::size_t kMax = 256;
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;
  static std::size_t size_of(const FileModule& module) {
    std::size_t out = module.damage.size();
    for (const FileImage& image : module.images) {
      out += sizeof(image);
      for (const std::string& kernel : image.kernels) out += sizeof(std::string) + kernel.size();
      for (const auto& [kernel, line] : image.lines)
        out += 2 * sizeof(std::string) + sizeof(line) + kernel.size();
    }
    return out;
  }
  std::map<Key, FileModule> known_;
  std::size_t bytes_ = 0;
};

/// The time that this thread has spent on the files of reports, while it lives and before.
class FileTime {
 public:
  using Clock = std::chrono::steady_clock;
  FileTime() : outer_(!running_), begin_(Clock::now()) { running_ = true; }
  ~FileTime() {
    if (!outer_) return;
    running_ = false;
    spent_ += Clock::now() - begin_;
  }
  FileTime(const FileTime&) = delete;
  FileTime& operator=(const FileTime&) = delete;
  static Clock::duration spent() { return spent_; }

 private:
  static thread_local inline Clock::duration spent_{};
  static thread_local inline bool running_ = false;
  bool outer_;
  Clock::time_point begin_;
};

/// Device code and pointers are looked for when they are first asked for: not for several threads at once.
/// The GNU build id of an ELF file, lower-case hex; empty where it has none or cannot be read.
std::string build_id_of(const std::string& path);

class ObjectFile {
 public:
  /// The file, or a clause that says why it cannot be used. An empty build id fits every file without one: an
  /// ELF or PE file, or a bare fatbin, cubin, PTX or LTO-IR, which is one module at address 0.
  static std::variant<ObjectFile, std::string> open(const std::string& path, std::string_view build_id);

  /// All device code of the file, in its own sections and in other data.
  const DeviceCode& code() const;
  /// A module of code(), relocatable parts included, with as much of its payloads as read_module() may read.
  FileModule module(std::size_t index, std::uint64_t& budget) const;
  FileModule module(std::size_t index) const;
  /// The module at a link-time virtual address: of a fatbin, its wrapper or a bare image, anywhere in the
  /// file.
  FileModule module_at(std::uint64_t address) const;
  /// What the kernels of the module there consist of, image by image; empty where there is none.
  std::vector<ImageBodies> bodies_at(std::uint64_t address, const std::vector<std::string>& kernels,
                                     std::uint64_t& budget) const;
  /// The module that holds a kernel, found by reading every image; empty where none does or there is too much
  /// device code for that.
  FileModule module_with_kernel(const std::string& kernel) const;
  /// The module that has kernels, where only one has; else empty. Nearly every nvcc program has a fatbin
  /// without kernels.
  FileModule only_module_with_kernels() const;
  /// Every architecture in the file, without reading payloads.
  std::vector<ImageCount> image_counts() const { return count_images(code()); }
  /// The function that holds a link-time address, mangled; empty where no symbol covers it.
  std::string symbol_at(std::uint64_t address) const;
  /// Whether it brings its own debug information of host code.
  bool has_dwarf() const;
  bool is_shared_library() const;
  /// Linked from relocatable device code: nvcc -rdc=true.
  bool has_relocatable_code() const;
  /// A fatbin, cubin or PTX without a host program around it.
  bool is_bare() const { return host_ == HostFormat::none; }

 private:
  ObjectFile(MappedFile file, HostFormat host, image::ElfReader elf)
      : file_(std::move(file)), host_(host), elf_(elf) {}
  const PointerMap& pointers() const;
  FileModule read_module_at(std::uint64_t address) const;
  FileModule find_module_with_kernel(const std::string& kernel) const;
  FileModule find_only_module_with_kernels() const;
  std::string find_symbol_at(std::uint64_t address) const;
  bool is_searchable() const;
  /// File offset of the fatbin or bare image at an address, or through the wrapper there; else a clause.
  std::variant<std::uint64_t, std::string> locate(std::uint64_t address) const;
  // What the members below hold are views into the mapping, which stays where it is when this is moved.
  MappedFile file_;
  HostFormat host_;
  image::ElfReader elf_;  ///< empty but for HostFormat::elf
  mutable std::optional<DeviceCode> code_;
  mutable std::optional<PointerMap> pointers_;
  mutable ModuleMemory modules_;
  mutable std::unordered_map<std::uint64_t, std::string> symbols_;  ///< by address
};

}  // namespace kshim::device_code
