// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "analyzer/knowledge/knowledge.h"
#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostPlaces = 3;
// A CMake build folder is rarely deeper above its products.
constexpr int kMostParents = 6;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether CMake builds CUDA there: a project that calls nvcc by itself takes no notice of
/// CMAKE_CUDA_ARCHITECTURES.
bool is_cuda_build(const std::filesystem::path& folder) {
  std::ifstream cache(folder / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    if (line.starts_with("CMAKE_CUDA_COMPILER:")) return true;
  }
  return false;
}

bool is_installed_python(std::string_view path) {
  return contains(path, "/site-packages/") || contains(path, "/dist-packages/");
}

// The standard library, installed packages, code made at run time (frozen importlib, torch.compile's output).
bool is_own_python(const PythonFrame& frame) {
  const std::string_view file = frame.file;
  if (file.empty() || is_installed_python(file) || contains(file, "torchinductor_")) return false;
  if (file.starts_with("<frozen")) return false;
  const std::size_t at = file.find("/lib/python3");
  return at == std::string_view::npos;
}

bool is_system_path(std::string_view path) {
  constexpr std::string_view kPrefixes[] = {"/lib/",           "/lib64/",   "/usr/lib/", "/usr/lib64/",
                                            "/usr/local/cuda", "/opt/cuda", "/usr/bin/", "/usr/local/lib/"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return path.starts_with(prefix); });
}

bool is_cuda_plumbing(std::string_view path) {
  constexpr std::string_view kNames[] = {"libcuda.so", "libcudart", "libkshim", "libcuda-", "libnvidia-"};
  const std::string_view name = basename_of(path);
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view part) { return name.starts_with(part); });
}

// Inside the user's file, but not theirs: the static runtime, and the stub nvcc makes for each kernel.
bool is_plumbing_symbol(std::string_view symbol, std::string_view kernel) {
  if (symbol.empty()) return false;
  constexpr std::string_view kPrefixes[] = {"cuda",
                                            "__cuda",
                                            "libcudart_static_",
                                            "__device_stub__",
                                            "_ZL17__cudaLaunch",
                                            "__static_initialization_and_destruction",
                                            "_start",
                                            "__libc_start",
                                            "_dl_"};
  if (std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                  [&](std::string_view prefix) { return symbol.starts_with(prefix); })) {
    return true;
  }
  return (!kernel.empty() && symbol == kernel) || contains(symbol, "__device_stub__") ||
         contains(symbol, "cudaLaunchKernel");
}

std::string symbol_of(const NativeFrame& frame, ObjectFiles& files) {
  if (!frame.symbol.empty() || frame.object.empty()) return frame.symbol;
  ObjectRecord object;
  object.path = frame.object;
  object.build_id = frame.build_id;
  const ObjectFile* file = files.find(object);
  // A frame's offset is where its call returns to: the byte before belongs to the call.
  return file != nullptr && frame.offset > 0 ? file->symbol_at(frame.offset - 1) : std::string();
}

}  // namespace

std::vector<Place> own_places(const FailureRecord& failure, const Report& report, ObjectFiles& files) {
  std::vector<Place> out;
  for (const auto* frames : {&failure.python, &failure.python_main}) {
    for (const PythonFrame& frame : *frames) {
      if (out.size() < kMostPlaces && is_own_python(frame)) {
        Place place;
        place.file = frame.file;
        place.line = frame.line;
        place.function = frame.function;
        place.python = true;
        out.push_back(std::move(place));
      }
    }
    if (!out.empty()) return out;
  }
  for (const NativeFrame& frame : failure.native) {
    if (out.size() >= kMostPlaces || frame.object.empty() || is_cuda_plumbing(frame.object)) continue;
    const bool executable = frame.object == report.process.exe;
    if ((is_system_path(frame.object) || is_installed_python(frame.object)) &&
        !(executable && !is_system_path(frame.object))) {
      continue;
    }
    const std::string symbol = symbol_of(frame, files);
    if (is_plumbing_symbol(symbol, failure.kernel)) continue;
    if (symbol.empty() && !out.empty()) continue;
    Place place;
    place.object = frame.object;
    place.offset = frame.offset;
    place.function = demangle(symbol);
    out.push_back(std::move(place));
  }
  // A frame with a name says more than an address; the order within each kind stays.
  std::stable_partition(out.begin(), out.end(), [](const Place& place) { return !place.function.empty(); });
  return out;
}

bool called_by_probing_library(const FailureRecord& failure) {
  for (const NativeFrame& frame : failure.native) {
    if (frame.object.empty() || is_cuda_plumbing(frame.object)) continue;
    return find_probing_library(frame.object) != nullptr;
  }
  return false;
}

bool launched_by_stub(const FailureRecord& failure, ObjectFiles& files) {
  return std::any_of(failure.native.begin(), failure.native.end(), [&](const NativeFrame& frame) {
    const std::string symbol = symbol_of(frame, files);
    return contains(symbol, "__device_stub__") || (!symbol.empty() && symbol == failure.kernel);
  });
}

OriginFacts origin_of(std::string_view path) {
  if (path.empty()) return {Origin::memory, {}};
  if (is_installed_python(path)) return {Origin::installed, {}};
  const std::string_view name = basename_of(path);
  if (contains(path, "/torch_extensions/") || contains(name, ".cpython-") || name.ends_with(".abi3.so")) {
    return {Origin::python_extension, {}};
  }
  if (is_system_path(path)) return {Origin::system, {}};
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (int level = 0; level < kMostParents && folder.has_relative_path();
       ++level, folder = folder.parent_path()) {
    if (is_cuda_build(folder)) return {Origin::cmake, folder.string()};
  }
  return {Origin::program, {}};
}

}  // namespace kshim::analysis
