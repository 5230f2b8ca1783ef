// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/torch_link.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "analyzer/device_code/mapped_file.h"
#include "kshim/image/elf.h"

namespace kshim::analysis {

bool lies_beside_torch(std::string_view path) {
  return path.starts_with("torch/") || path.find("/torch/") != std::string_view::npos ||
         path.find("torch_extensions/") != std::string_view::npos;
}

// The names are looked for among all strings of the dynamic linker, where every DT_NEEDED points: nothing
// else there begins so, since symbols of PyTorch are mangled.
bool links_torch(Bytes file) {
  constexpr std::string_view kNames[] = {"libtorch.so", "libtorch_", "libc10.so", "libc10_cuda.so"};
  const auto elf = image::ElfReader::open(file);
  if (!elf) return false;
  const auto strings = elf->section(".dynstr");
  if (!strings) return false;
  const std::string_view text(reinterpret_cast<const char*>(strings->bytes.data()), strings->bytes.size());
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) {
    return text.find(std::string(1, '\0') + std::string(name)) != std::string_view::npos;
  });
}

bool file_links_torch(std::string_view path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const auto opened = MappedFile::open(path);
  return std::holds_alternative<MappedFile>(opened) && links_torch(std::get<MappedFile>(opened).bytes());
}

}  // namespace kshim::analysis
