// SPDX-License-Identifier: Apache-2.0
// Modules of a file that were read: a thousand reports of one run ask for the same ones, and each takes a
// decompression.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analyzer/device_code/image_contents.h"

namespace kshim::analysis {

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
    if (known_.size() < kMost && bytes_ + size <= kMostBytes) {
      bytes_ += size;
      known_.emplace(key, module);
    }
    return module;
  }

 private:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;
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

}  // namespace kshim::analysis
