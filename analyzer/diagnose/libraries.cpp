// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/libraries.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "kshim/base/cuda_error.h"

namespace kshim::diagnose {
using core::Cause;
using input::CudaLibrary;

namespace {

using Libraries = std::vector<CudaLibrary>;

constexpr double kReleasesKnown = 0.9;
constexpr double kPlacesKnown = 0.6;
constexpr double kTwoCopies = 0.6;
constexpr double kBuiltForAnother = 0.75;
constexpr double kDroppedByTable = 0.75;
constexpr double kNotYetByTable = 0.5;  // PTX may carry an older release over to a newer GPU
constexpr double kSideBySide = 0.4;     // works, where each library keeps to its own

bool is_cudnn(const CudaLibrary& library) { return library.family.starts_with("cudnn"); }

// "libcublas.so.12 12.4.5.8 in /usr/lib"
std::string with_place(const CudaLibrary& library) {
  const bool says_more = core::contains(library.version, '.');
  return fmt::format("{}{} in {}", library.record.soname, says_more ? " " + library.version : "",
                     library.folder);
}

bool of_one_build(const CudaLibrary& a, const CudaLibrary& b) {
  return !a.record.build_id.empty() && a.record.build_id == b.record.build_id;
}

bool of_one_place(const CudaLibrary& a, const CudaLibrary& b) {
  const auto folder = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  return a.folder == b.folder || folder(a.path) == folder(b.path);
}

// Parts of one release lie in one folder, however they came there.
std::optional<double> not_together(const CudaLibrary& a, const CudaLibrary& b) {
  if (input::releases_differ(a.version, b.version)) return kReleasesKnown;
  if (of_one_place(a, b) || input::releases_agree(a.version, b.version)) return std::nullopt;
  return kPlacesKnown;
}

std::string how_apart(double confidence) {
  return confidence == kReleasesKnown ? "of different releases" : "from different places";
}

// A library and its part, unless another copy of the part is the one that it came with.
void parts(const Libraries& all, std::vector<LibraryMatch>& out) {
  for (const data::LibraryPartsRow& row : data::library_parts()) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].family != row.library) continue;
      std::optional<double> apart;
      std::size_t other = 0;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].family != row.part || all[k].major != all[i].major) continue;
        const auto here = not_together(all[i], all[k]);
        apart = here;
        other = k;
        if (!here) break;
      }
      if (!apart) continue;
      out.push_back(
          {.kind = LibraryConflictKind::parts,
           .confidence = *apart,
           .headline = fmt::format("lib{} and lib{} are {}", row.library, row.part, how_apart(*apart)),
           .because = fmt::format("{} uses {}: {}, so both must come from the same release",
                                  with_place(all[i]), with_place(all[other]), row.why),
           .libraries = {i, other}});
    }
  }
}

// A wheel's own copy, with a hash in the file's name: what is linked to that name uses no other.
bool is_renamed(const CudaLibrary& library) {
  const std::string_view path = library.path;
  return !path.substr(path.rfind('/') + 1).starts_with(library.record.soname);
}

void copies(const Libraries& all, std::vector<LibraryMatch>& out) {
  std::set<std::string> told;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      const CudaLibrary& a = all[i];
      const CudaLibrary& b = all[k];
      if (a.record.soname != b.record.soname || a.path == b.path || of_one_build(a, b)) continue;
      if (is_renamed(a) || is_renamed(b)) continue;
      if (data::is_stateless_library(a.family) || is_cudnn(a) || !told.insert(a.record.soname).second)
        continue;
      out.push_back({.kind = LibraryConflictKind::copies,
                     .confidence = kTwoCopies,
                     .headline = fmt::format("the process loaded two copies of {}", a.record.soname),
                     .because = fmt::format(
                         "{} and {} are both loaded: they do not share registered memory or open handles",
                         with_place(a), with_place(b)),
                     .libraries = {i, k}});
    }
  }
}

// All families together: a process that loads two majors of one library loads those of the others, too.
void majors(const Libraries& all, std::vector<LibraryMatch>& out) {
  std::map<std::string, std::map<unsigned, std::size_t>> families;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].major == 0 || is_cudnn(all[i]) || data::is_stateless_library(all[i].family)) continue;
    families[all[i].family].try_emplace(all[i].major, i);
  }
  LibraryMatch match{.kind = LibraryConflictKind::majors, .confidence = kSideBySide};
  std::vector<std::string> names;
  for (const auto& [family, found] : families) {
    if (found.size() < 2) continue;
    for (const auto& [major, index] : found) {
      match.libraries.push_back(index);
      names.push_back(all[index].record.soname);
    }
  }
  if (names.empty()) return;
  if (names.size() > 4) names.resize(4);
  match.headline = fmt::format("{} are in one process", core::enumerate(names));
  match.because = fmt::format(
      "{} belong to different CUDA versions: they can coexist only if no handle or registration of one is "
      "passed to the other",
      core::enumerate(names));
  out.push_back(std::move(match));
}

void cudnn_parts(const Libraries& all, const std::vector<std::size_t>& cudnn,
                 std::vector<LibraryMatch>& out) {
  LibraryMatch worst{.cause = Cause::cudnn_mismatch, .kind = LibraryConflictKind::parts};
  for (std::size_t i = 0; i < cudnn.size(); ++i) {
    for (std::size_t k = i + 1; k < cudnn.size(); ++k) {
      const CudaLibrary& a = all[cudnn[i]];
      const CudaLibrary& b = all[cudnn[k]];
      if (a.major != b.major) continue;
      const auto together = not_together(a, b);
      if (!together || *together <= worst.confidence) continue;
      worst.confidence = *together;
      worst.libraries = {cudnn[i], cudnn[k]};
      worst.because = fmt::format("{} works with {}: all cuDNN components must come from the same release",
                                  with_place(a), with_place(b));
    }
  }
  if (worst.libraries.empty()) return;
  worst.headline = fmt::format("the parts of cuDNN are {}", how_apart(worst.confidence));
  out.push_back(std::move(worst));
}

void cudnn_majors(const Libraries& all, const std::vector<std::size_t>& cudnn,
                  std::vector<LibraryMatch>& out) {
  const auto other = std::ranges::find_if(
      cudnn, [&](std::size_t index) { return all[index].major != all[cudnn.front()].major; });
  if (other == cudnn.end()) return;
  out.push_back(
      {.cause = Cause::cudnn_mismatch,
       .kind = LibraryConflictKind::majors,
       .confidence = kSideBySide,
       .headline = fmt::format("cuDNN {} and cuDNN {} are in one process", all[cudnn.front()].major,
                               all[*other].major),
       .because = fmt::format("{} and {} are both loaded: this works only if each library uses its own cuDNN",
                              with_place(all[cudnn.front()]), with_place(all[*other])),
       .libraries = {cudnn.front(), *other}});
}

void cudnn_built_for(const Libraries& all, const std::vector<std::size_t>& cudnn,
                     std::vector<LibraryMatch>& out) {
  const auto told =
      std::ranges::find_if(cudnn, [&](std::size_t index) { return all[index].cuda.has_value(); });
  if (told == cudnn.end()) return;
  const unsigned wanted = *all[*told].cuda;
  std::optional<std::size_t> blas;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].family != "cublasLt") continue;
    if (all[i].major == wanted) return;
    blas = i;
  }
  if (!blas) return;
  out.push_back({.cause = Cause::cudnn_mismatch,
                 .kind = LibraryConflictKind::built,
                 .confidence = kBuiltForAnother,
                 .headline = fmt::format("cuDNN is the build for CUDA {}, and the process runs CUDA {}",
                                         wanted, all[*blas].major),
                 .because = fmt::format("{} is built for CUDA {}, and the cuBLAS that is loaded is {}",
                                        with_place(all[*told]), wanted, with_place(all[*blas])),
                 .libraries = {*told, *blas}});
}

void cudnn_drops(const Libraries& all, const std::vector<std::size_t>& cudnn,
                 std::span<const image::ComputeCapability> devices, std::vector<LibraryMatch>& out) {
  const auto told =
      std::ranges::find_if(cudnn, [&](std::size_t index) { return core::contains(all[index].version, '.'); });
  if (told == cudnn.end()) return;
  const CudaLibrary& library = all[*told];
  for (const image::ComputeCapability cc : devices) {
    const auto support = data::library_supports("cuDNN", library.version, cc);
    if (!support || *support == data::Support::yes) continue;
    const bool too_old = *support == data::Support::too_old_gpu;
    const auto* row = too_old ? data::last_library_for("cuDNN", cc) : data::first_library_for("cuDNN", cc);
    const image::ShortName gpu = image::to_name(cc);
    LibraryMatch match{.cause = Cause::cudnn_mismatch,
                       .kind = LibraryConflictKind::dropped,
                       .confidence = too_old ? kDroppedByTable : kNotYetByTable,
                       .libraries = {*told},
                       .device = cc};
    match.headline =
        fmt::format("cuDNN {} does not support compute capability {}", library.version, gpu.view());
    match.because = fmt::format("{}: NVIDIA's list of what that release serves has no {}{}",
                                with_place(library), gpu.view(),
                                row == nullptr ? ""
                                : too_old      ? fmt::format("; cuDNN {} was the last that did", row->last)
                                          : fmt::format("; cuDNN {} is the first that does", row->first));
    out.push_back(std::move(match));
    return;
  }
}

}  // namespace

std::vector<LibraryMatch> judge_libraries(const Libraries& libraries,
                                          std::span<const image::ComputeCapability> devices) {
  std::vector<LibraryMatch> out;
  parts(libraries, out);
  copies(libraries, out);
  majors(libraries, out);
  std::vector<std::size_t> cudnn;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    if (is_cudnn(libraries[i])) cudnn.push_back(i);
  }
  if (!cudnn.empty()) {
    cudnn_parts(libraries, cudnn, out);
    cudnn_majors(libraries, cudnn, out);
    cudnn_built_for(libraries, cudnn, out);
    cudnn_drops(libraries, cudnn, devices, out);
  }
  std::ranges::stable_sort(out, std::greater(), &LibraryMatch::confidence);
  return out;
}

bool is_strong(LibraryConflictKind kind) {
  return kind == LibraryConflictKind::parts || kind == LibraryConflictKind::copies ||
         kind == LibraryConflictKind::built || kind == LibraryConflictKind::dropped;
}

bool may_be_library_conflict(int code) { return code_has(code, code_trait::ambiguous | code_trait::handle); }

}  // namespace kshim::diagnose
