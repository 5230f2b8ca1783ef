// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/diagnose/program.h"

namespace kshim::advise {
using diagnose::LibraryConflict;
using diagnose::LibraryConflictKind;
using input::CudaLibrary;

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<std::string> entries_of(const std::string& search_path) {
  std::vector<std::string> out = core::split(search_path, ":");
  std::erase(out, "");
  return out;
}

bool names_folder_of(std::string_view entry, const CudaLibrary& library) {
  while (entry.size() > 1 && entry.ends_with('/')) entry.remove_suffix(1);
  return entry == folder_of(library.record.path) || entry == folder_of(library.path) ||
         entry == library.folder;
}

// One of them comes by LD_LIBRARY_PATH, which goes before the RUNPATH by which the other is found.
void add_search_path(const LibraryConflict& at, AdviceDraft& out) {
  std::vector<std::string> kept;
  std::vector<std::string> dropped;
  for (const std::string& entry : entries_of(at.search_path)) {
    if (entry == at.simulator) continue;
    const auto by_path = [&](const CudaLibrary& library) { return names_folder_of(entry, library); };
    const auto all = static_cast<std::ptrdiff_t>(at.libraries.size());
    const auto here = std::ranges::count_if(at.libraries, by_path);
    const bool mixes = here != 0 && (here != all || at.kind == LibraryConflictKind::built);
    (mixes ? dropped : kept).push_back(entry);
  }
  if (dropped.empty()) return;
  out.fixes.push_back(fix_of("trim-library-path", {{"folders", core::enumerate(dropped)}}));
  out.fixes.back().steps.push_back(
      kept.empty() ? say::command_of("unset LD_LIBRARY_PATH")
                   : say::command_of("export LD_LIBRARY_PATH={folders}",
                                     {{"folders", core::shell_quote(core::join(kept, ":"))}}));
}

bool in_wheel(const CudaLibrary& library) {
  return library.path.find("/site-packages/") != std::string::npos ||
         library.path.find("/dist-packages/") != std::string::npos;
}

bool in_conda(const LibraryConflict& at, const CudaLibrary& library) {
  return !at.conda.empty() && library.path.starts_with(at.conda + "/") && !in_wheel(library);
}

void add_conda(const LibraryConflict& at, AdviceDraft& out) {
  const auto conda =
      std::ranges::find_if(at.libraries, [&](const CudaLibrary& library) { return in_conda(at, library); });
  const auto wheel = std::ranges::find_if(at.libraries, in_wheel);
  if (conda == at.libraries.end() || wheel == at.libraries.end()) return;
  out.fixes.push_back(
      fix_of("keep-one-manager", {{"conda", conda->record.soname}, {"pip", wheel->record.soname}}));
}

void add_reinstall(const LibraryConflict& at, AdviceDraft& out) {
  const auto wheel =
      std::ranges::find_if(at.libraries, [](const CudaLibrary& library) { return !library.package.empty(); });
  if (wheel == at.libraries.end() || at.kind == LibraryConflictKind::dropped ||
      at.kind == LibraryConflictKind::built || at.kind == LibraryConflictKind::majors)
    return;
  out.fixes.push_back(
      fix_of("install-again",
             {{"package", wheel->package},
              {"pin", wheel->version.find('.') == std::string::npos ? "" : "==" + wheel->version}}));
  out.fixes.back().arguments = {{"package", wheel->package}};
}

void add_majors(const LibraryConflict& at, AdviceDraft& out) {
  if (at.kind != LibraryConflictKind::majors) return;
  const bool packages = std::ranges::any_of(at.libraries, [](const CudaLibrary& library) {
    return library.package.find("-cu") != std::string::npos;
  });
  out.fixes.push_back(fix_of(packages ? "keep-one-cuda" : "build-with-one-toolkit"));
}

void add_cudnn(const LibraryConflict& at, const std::optional<image::ComputeCapability>& device,
               AdviceDraft& out) {
  if (at.libraries.empty()) return;
  const CudaLibrary& cudnn = at.libraries.front();
  if (at.kind == LibraryConflictKind::built && at.libraries.size() > 1) {
    const std::string wanted = std::to_string(at.libraries[1].major);
    const bool known = !cudnn.package.empty();
    out.fixes.push_back(fix_of("install-cudnn-for-cuda", {{"cuda", wanted},
                                                          {"package", cudnn.package},
                                                          {"major", known ? wanted : ""},
                                                          {"both", known ? "both" : ""}}));
    out.fixes.back().arguments = {{"package", fmt::format("nvidia-cudnn-cu{}", wanted)}};
  }
  if (at.kind != LibraryConflictKind::dropped || !device) return;
  const auto* last = data::last_library_for("cuDNN", *device);
  const auto* first = data::first_library_for("cuDNN", *device);
  if (last == nullptr || first == nullptr) return;
  if (auto older = older_cuda_fix("cuDNN", *device, cudnn.cuda.value_or(0)))
    return out.fixes.push_back(std::move(*older));
  const bool newer = last->last == "0";
  const std::string release(newer ? first->first : last->last);
  // What loads libcudnn.so.8 finds none in a package of cuDNN 9.
  const std::string major = release.substr(0, release.find('.'));
  const bool another = cudnn.major != 0 && std::to_string(cudnn.major) != major;
  out.fixes.push_back(fix_of(another ? "use-other-cudnn/program"
                             : newer ? "use-other-cudnn/newer"
                                     : "use-other-cudnn/older",
                             {{"release", release},
                              {"major", major},
                              {"there", std::to_string(cudnn.major)},
                              {"package", cudnn.package},
                              {"asking", cudnn.package.empty() ? "" : "PyTorch and others ask"}}));
  out.fixes.back().arguments = {{"package", cudnn.package}, {"release", release}};
}

void add_dead_ends(const LibraryConflict& at, AdviceDraft& out) {
  out.dead_ends.push_back(no_driver_update(at.kind == LibraryConflictKind::dropped
                                               ? "the library's list of GPUs is its own"
                                               : "one driver serves all these releases"));
  if (at.kind != LibraryConflictKind::dropped)
    out.dead_ends.push_back({"setting CUDA_HOME", "it decides what is built with, and not what is loaded"});
}

bool is_driver(const std::string& name) {
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
}

}  // namespace

void add_missing_library_advice(const diagnose::MissingLibrary& missing, AdviceDraft& out) {
  const std::string library = missing.name.substr(0, missing.name.find(".so"));
  // What is there is not to be installed again.
  if (!missing.folder.empty()) {
    const bool named = !missing.name.empty();
    out.fixes.push_back(fix_of("name-library-folder",
                               {{"library", named ? missing.name : "the libraries of NVIDIA's packages"},
                                {"folder", core::shell_quote(missing.folder)}}));
  } else if (is_driver(missing.name)) {
    out.fixes.push_back(fix_of("install-driver", {{"library", missing.name}}));
  } else {
    out.fixes.push_back(
        fix_of("install-library", {{"library", missing.name}, {"stem", core::shell_quote(library)}}));
  }
  if (!is_driver(missing.name)) out.dead_ends.push_back(no_driver_update("it does not bring this library"));
  if (!missing.name.empty())
    out.dead_ends.push_back(
        {fmt::format("a symbolic link from {} to another version", missing.name),
         "functions of the same name take other arguments there: what begins then ends in a crash"});
}

void add_library_advice(const diagnose::Facts& input, AdviceDraft& out) {
  const LibraryConflict& at = *input.process.conflict;
  add_search_path(at, out);
  if (at.kind == LibraryConflictKind::dropped && torch_serves(input) == false)
    add_wheel_fix(input, out.fixes, "torch");
  if (out.fixes.empty() || at.kind != LibraryConflictKind::dropped) add_cudnn(at, input.gpu.cc, out);
  add_conda(at, out);
  add_reinstall(at, out);
  add_majors(at, out);
  if (out.fixes.empty()) {
    out.fixes.push_back(
        fix_of("see-what-is-found",
               {{"library", at.libraries.empty() ? "libcu" : "lib" + at.libraries.front().family}},
               &input.process.program));
  }
  add_dead_ends(at, out);
}

}  // namespace kshim::advise
