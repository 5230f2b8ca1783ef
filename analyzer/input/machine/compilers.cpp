// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/machine/compilers.h"

#include <algorithm>
#include <array>

#include "analyzer/input/machine/gather.h"
#include "kshim/files/open_file.h"
#include "kshim/image/compiler_program.h"

namespace kshim::doctor {

image::Version version_of_compiler(const std::filesystem::path& path) {
  const files::OpenFile file = files::open_to_read(path);
  if (!file) return {};
  std::array<char, 65536> block;
  return image::compiler_release(
      [&](std::uint64_t offset, void* to, std::size_t size) {
        return files::read_at(file.fd.get(), offset, {static_cast<char*>(to), size}).value_or(0);
      },
      block);
}

std::vector<CompilerProgram> find_compilers(const Machine& machine, std::string_view name,
                                            const std::string& packages) {
  std::vector<CompilerProgram> out;
  const auto look_in = [&](const std::string& folder) {
    for (const std::string_view tail : {"", "-blackwell"}) {
      const std::string path = machine.real(join_path(folder, std::string(name).append(tail)));
      if (path.empty() || !machine.is_executable(path) ||
          std::any_of(out.begin(), out.end(),
                      [&](const CompilerProgram& known) { return known.path == path; }))
        continue;
      if (const image::Version version = version_of_compiler(machine.at(path)); version.known())
        out.push_back({path, version});
    }
  };
  const auto look_in_packages = [&](const std::string& folder) {
    for (const char* below : {"nvidia/cu13/bin", "nvidia/cu13/nvvm/bin", "nvidia/cuda_nvcc/bin",
                              "nvidia/cuda_nvcc/nvvm/bin", "triton/backends/nvidia/bin"})
      look_in(join_path(folder, below));
  };
  for (const std::string& folder : split(machine.env("PATH"), ":"))
    if (folder.starts_with('/')) look_in(folder);
  for (const Toolkit& toolkit : find_toolkits(machine)) {
    look_in(join_path(toolkit.folder, "bin"));
    look_in(join_path(toolkit.folder, "nvvm/bin"));
  }
  if (!packages.empty()) look_in_packages(packages);
  for (const Python& python : find_pythons(machine))
    for (const std::string& folder : python.folders) look_in_packages(folder);
  return out;
}

}  // namespace kshim::doctor
