// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/cudnn_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "analyzer/data/library_needs.h"
#include "analyzer/data/wheels.h"
#include "analyzer/diagnose/attribution.h"
#include "analyzer/input/report/cuda_library.h"

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;

constexpr double kBuiltWithNewer = 0.85;
constexpr double kReleasesKnown = 0.8;
constexpr double kFoldersKnown = 0.55;
constexpr std::size_t kMostEntries = 64;

std::string release_of(const CudaLibrary& library, const std::vector<CudaLibrary>& all) {
  if (library.version.find('.') != std::string::npos) return library.version;
  for (const CudaLibrary& other : all) {
    const bool part = other.family.starts_with("cudnn") && other.folder == library.folder;
    if (part && other.version.find('.') != std::string::npos) return other.version;
  }
  return {};
}

void older_than_built_with(const Scene& scene, const std::vector<CudaLibrary>& all, std::size_t cudnn,
                           std::vector<LibraryMatch>& out) {
  const std::string have = release_of(all[cudnn], all);
  if (have.empty()) return;
  for (const ObjectRecord& object : scene.report.objects) {
    const auto package = package_of(scene, object);
    if (!package) continue;
    const LibraryNeedRow* row = library_need("cuDNN", package->name, package->version);
    if (row == nullptr || compare_releases(have, row->oldest) >= 0) continue;
    LibraryMatch match{Cause::cudnn_mismatch, Mixture::older, kBuiltWithNewer, {}, {}, {cudnn}, {}, {}, {}};
    match.wanted = row->oldest;
    match.headline = fmt::format("cuDNN {} is older than the {} that {} {} was built with", have, row->oldest,
                                 package->name, package->version);
    match.because = fmt::format("{} {} is built with cuDNN {} and does without an older one: {} in {} is {}",
                                package->name, package->version, row->oldest, all[cudnn].record.soname,
                                all[cudnn].folder, have);
    out.push_back(std::move(match));
    return;
  }
}

struct Shadow {
  std::string folder, file, release;
};

// The first folder of LD_LIBRARY_PATH that has a part of this major version; nothing where that is the
// library's own.
std::optional<Shadow> shadow_of(const CudaLibrary& cudnn, std::string_view search) {
  static constexpr std::array kParts = {"graph", "ops",       "engines_precompiled",
                                        "cnn",   "ops_infer", "cnn_infer"};
  for (std::size_t i = 0; i < kMostEntries && !search.empty(); ++i) {
    const std::string entry(search.substr(0, search.find(':')));
    search.remove_prefix(std::min(search.size(), entry.size() + 1));
    if (entry.empty() || entry.front() != '/') continue;
    for (const char* part : kParts) {
      const std::string file = fmt::format("{}/libcudnn_{}.so.{}", entry, part, cudnn.major);
      std::error_code error;
      const fs::path real = fs::canonical(file, error);
      if (error || !fs::is_regular_file(real, error)) continue;
      if (real.parent_path() == cudnn.folder) return std::nullopt;
      return Shadow{entry, file, read_cudnn(real.string(), {}).version};
    }
  }
  return std::nullopt;
}

void parts_of_another(const Scene& scene, const std::vector<CudaLibrary>& all, std::size_t cudnn,
                      std::vector<LibraryMatch>& out) {
  const auto search = scene.report.process.env.find("LD_LIBRARY_PATH");
  if (search == scene.report.process.env.end()) return;
  const auto shadow = shadow_of(all[cudnn], search->second);
  if (!shadow) return;
  const std::string have = release_of(all[cudnn], all);
  const bool known = !have.empty() && !shadow->release.empty();
  if (known && !releases_differ(have, shadow->release)) return;
  LibraryMatch match{Cause::cudnn_mismatch,
                     Mixture::shadowed,
                     known ? kReleasesKnown : kFoldersKnown,
                     {},
                     {},
                     {cudnn},
                     {},
                     shadow->folder,
                     {}};
  match.headline = fmt::format("cuDNN{} finds parts of {} in LD_LIBRARY_PATH", have.empty() ? "" : " " + have,
                               known ? "cuDNN " + shadow->release : "another one");
  match.because = fmt::format(
      "{} in {} loads its parts by name, and LD_LIBRARY_PATH has {}{} before its own: cuDNN's parts are "
      "to be of one release",
      all[cudnn].record.soname, all[cudnn].folder, shadow->file,
      shadow->release.empty() ? "" : " of " + shadow->release);
  out.push_back(std::move(match));
}

}  // namespace

void add_cudnn_choice(const Scene& scene, const std::vector<CudaLibrary>& libraries,
                      std::vector<LibraryMatch>& matches) {
  const auto cudnn = std::find_if(libraries.begin(), libraries.end(),
                                  [](const CudaLibrary& library) { return library.family == "cudnn"; });
  if (cudnn == libraries.end()) return;
  const auto index = static_cast<std::size_t>(cudnn - libraries.begin());
  older_than_built_with(scene, libraries, index, matches);
  const bool parts_told = std::any_of(matches.begin(), matches.end(), [](const LibraryMatch& match) {
    return match.cause == Cause::cudnn_mismatch && match.kind == Mixture::parts;
  });
  if (!parts_told) parts_of_another(scene, libraries, index, matches);
}

}  // namespace kshim::analysis
