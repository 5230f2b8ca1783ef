// SPDX-License-Identifier: Apache-2.0
#include "modules/file_bytes.h"

#include <fstream>

namespace kshim::sim {

std::optional<std::vector<std::byte>> file_bytes(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  constexpr std::size_t kStep = std::size_t{1} << 16U;
  std::vector<std::byte> bytes;
  for (std::size_t size = 0; file; bytes.resize(size)) {
    bytes.resize(size + kStep);
    file.read(reinterpret_cast<char*>(bytes.data() + size), kStep);
    size += static_cast<std::size_t>(file.gcount());
  }
  if (file.bad()) return std::nullopt;
  return bytes;
}

}  // namespace kshim::sim
