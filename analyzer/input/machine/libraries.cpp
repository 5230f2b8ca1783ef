// SPDX-License-Identifier: Apache-2.0
// CUDA's libraries as a program started here would find them, and what LD_PRELOAD puts before them.
#include <algorithm>

#include "analyzer/data/knowledge.h"
#include "analyzer/input/machine/gather.h"

namespace kshim::doctor {
namespace {

// What programs and libraries open by name. A soname that is not here is named where a program is linked to
// it.
constexpr std::string_view kNames[] = {
    "libcuda.so.1",       "libnvidia-ml.so.1",  "libcudart.so.11.0", "libcudart.so.12",
    "libcudart.so.13",    "libnvrtc.so.11.2",   "libnvrtc.so.12",    "libnvrtc.so.13",
    "libnvJitLink.so.12", "libnvJitLink.so.13", "libcublas.so.11",   "libcublas.so.12",
    "libcublas.so.13",    "libcublasLt.so.11",  "libcublasLt.so.12", "libcublasLt.so.13",
    "libcudnn.so.8",      "libcudnn.so.9",      "libcufft.so.10",    "libcufft.so.11",
    "libcufft.so.12",     "libcurand.so.10",    "libcusolver.so.11", "libcusolver.so.12",
    "libcusparse.so.11",  "libcusparse.so.12",  "libnccl.so.2",      "libnvidia-ptxjitcompiler.so.1"};

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string version_in_name(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t mark = name.find(".so.");
  if (mark == std::string_view::npos) return {};
  const std::string_view version = name.substr(mark + 4);
  return version.find('.') == std::string_view::npos ? std::string() : std::string(version);
}

bool is_cuda_library(std::string_view name) {
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-ml.so") ||
         (name.find(".so") != std::string_view::npos && analysis::find_vendor_library(name) != nullptr);
}

std::vector<Library> find_libraries(const Machine& machine, const Loader& loader) {
  std::vector<Library> out;
  for (const std::string_view name : kNames) {
    const auto found = loader.find(name);
    if (!found) continue;
    out.push_back({std::string(name), *found, version_in_name(machine.real(found->path))});
  }
  return out;
}

std::vector<Preload> find_preloads(const Machine& machine) {
  std::vector<Preload> out;
  std::vector<std::string> entries = split(machine.env("LD_PRELOAD"), ": ");
  // ld.so(8): a list of libraries that are preloaded into every program of the machine.
  for (const std::string& entry : split(machine.read("/etc/ld.so.preload"), ": \t\n"))
    entries.push_back(entry);
  for (const std::string& entry : entries) {
    if (entry.empty()) continue;
    Preload preload{.path = entry, .note = {}, .there = true};
    if (entry.substr(0, 1) == "/") {
      preload.there = machine.is_file(entry);
      const auto file = preload.there ? analysis::elf_facts(machine.at(entry)) : std::nullopt;
      const std::string_view name = file_name(entry);
      if (name == "libkshim.so") {
        preload.note = "the shim";
      } else if (name.starts_with("libasan.") || name.starts_with("libtsan.") ||
                 name.starts_with("libclang_rt.")) {
        preload.note = "a sanitizer's runtime, which must stand before libkshim.so";
      } else if (file && !file->same_class) {
        preload.note = "of another word size or machine";
      } else if (file && file->defines_dlsym) {
        preload.note = "stands in for dlsym, as libkshim.so does: whichever comes first is asked first";
      }
    }
    out.push_back(std::move(preload));
  }
  return out;
}

}  // namespace kshim::doctor
