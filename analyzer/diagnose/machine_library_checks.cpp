// SPDX-License-Identifier: Apache-2.0
// Libraries that get into each other's way, and what keeps the shim out of a program.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/machine_checks.h"
#include "analyzer/input/machine/gather.h"

namespace kshim::doctor {
namespace {

using analysis::Severity;

void add(Facts& facts, Severity severity, std::string_view id, std::string text, std::string advice = {}) {
  facts.checks.push_back({severity, std::string(id), std::move(text), std::move(advice)});
}

/// "libcudart" and "13" of libcudart.so.13.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t mark = name.find(".so.");
  if (mark == std::string::npos) return {name, {}};
  const std::string version = name.substr(mark + 4);
  return {name.substr(0, mark), version.substr(0, version.find('.'))};
}

/// "12.8.4.1" and "12.9" differ, "12.8" and "12.8.4.1" do not: a file's name may say less than it is.
bool differ(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  const std::vector<std::string> left = split(a, ".");
  const std::vector<std::string> right = split(b, ".");
  return !std::equal(left.begin(),
                     left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), right.size())),
                     right.begin());
}

/// The wheels' and conda's folders: their own programs and modules look there first, by RPATH, unless
/// LD_LIBRARY_PATH goes before it.
std::vector<std::string> environment_folders(const Machine& machine, const Facts& facts) {
  std::vector<std::string> out;
  for (const Python& python : facts.pythons)
    out.insert(out.end(), python.library_folders.begin(), python.library_folders.end());
  if (const std::string_view conda = machine.env("CONDA_PREFIX"); !conda.empty())
    out.push_back(join_path(conda, "lib"));
  return out;
}

/// Files in LD_LIBRARY_PATH that stand before a different copy of an environment's.
void check_shadows(const Machine& machine, const Loader& loader, Facts& facts) {
  for (const std::string& folder : environment_folders(machine, facts)) {
    std::vector<std::string> shadowed;
    std::string by;
    for (const std::string& name : machine.names(folder)) {
      if (!is_cuda_library(name) || parts_of(name).second.empty()) continue;
      const auto found = loader.find(name);
      const std::string own = machine.real(join_path(folder, name));
      if (!found || found->how != "LD_LIBRARY_PATH" || found->real == own) continue;
      shadowed.push_back(name);
      by = found->path.substr(0, found->path.rfind('/'));
    }
    if (shadowed.empty()) continue;
    const std::size_t count = shadowed.size();
    if (count > 3) shadowed.resize(3);
    add(facts, Severity::warning, "shadowed-libraries",
        fmt::format("LD_LIBRARY_PATH puts {} in {} before {} in {}", analysis::enumerate(shadowed), by,
                    count == 1 ? "the one" : "those", folder),
        "unset LD_LIBRARY_PATH where a Python environment brings its own CUDA");
  }
}

void check_copies(const Loader& loader, Facts& facts) {
  for (const Library& library : facts.libraries) {
    for (const FoundFile& other : loader.all(library.name)) {
      const std::string version = version_in_name(other.real);
      if (other.real == library.file.real || !differ(library.version, version)) continue;
      add(facts, Severity::warning, "two-copies",
          fmt::format(
              "{} is there twice: {} ({}, by {}) is taken, and {} ({}, by {}) is what a program without that "
              "path gets",
              library.name, library.file.path, library.version, library.file.how, other.path, version,
              other.how),
          "keep one of them");
    }
  }
}

/// Wheels built for several majors of CUDA, in one environment: nvidia-cublas-cu12 beside -cu11.
void check_wheels(Facts& facts) {
  for (const Python& python : facts.pythons) {
    std::map<std::string, std::set<std::string>> majors;
    for (const PythonWheel& wheel : python.wheels) {
      const std::size_t mark = wheel.name.rfind("-cu");
      if (!wheel.name.starts_with("nvidia-") || mark == std::string::npos) continue;
      const std::string major = wheel.name.substr(mark + 3);
      if (major.find_first_not_of("0123456789") == std::string::npos && !major.empty())
        majors[wheel.name.substr(0, mark)].insert(major);
    }
    for (const auto& [name, found] : majors) {
      if (found.size() < 2) continue;
      add(facts, Severity::warning, "mixed-wheels",
          fmt::format(
              "{} has {} for CUDA {}: which of them a process loads first is a matter of import order",
              python.interpreter, name,
              analysis::enumerate(std::vector<std::string>(found.begin(), found.end()))),
          fmt::format("pip uninstall {}-cu{}", name, *found.begin()));
    }
  }
}

void check_preloads(Facts& facts) {
  for (const Preload& preload : facts.preloads) {
    if (!preload.there)
      add(facts, Severity::warning, "preload-missing",
          fmt::format("LD_PRELOAD names {}, which is not there: the loader says so in every program",
                      preload.path),
          "correct LD_PRELOAD or /etc/ld.so.preload");
    if (preload.note.starts_with("stands in for dlsym"))
      add(facts, Severity::info, "preload-dlsym", fmt::format("{} {}", preload.path, preload.note));
  }
}

}  // namespace

void check_libraries(const Machine& machine, const Loader& loader, Facts& facts) {
  check_shadows(machine, loader, facts);
  check_copies(loader, facts);
  check_wheels(facts);
  check_preloads(facts);
}

void check_program(Facts& facts) {
  if (!facts.program) return;
  const Program program = *facts.program;
  if (!program.found) {
    add(facts, Severity::error, "program-missing",
        fmt::format("{} is not there, or cannot be read", program.path));
    return;
  }
  if (!program.elf) {
    add(facts, Severity::error, "program-unknown",
        fmt::format("{} is neither a program nor a script with an interpreter", program.path));
    return;
  }
  if (!program.blind.empty())
    add(facts, Severity::warning, "blind",
        fmt::format("libkshim.so cannot watch {}: {}", program.path, program.blind),
        "where its source is at hand, link it dynamically; kshim scan reads what it is built for");
  if (!program.deepbind.empty())
    add(facts, Severity::warning, "deepbind",
        fmt::format(
            "{} opens libraries with RTLD_DEEPBIND ({}): what those ask of CUDA goes past libkshim.so",
            program.path, program.deepbind),
        "kshim run --audit sees most of it");
  for (const std::string& file : program.dlmopen)
    add(facts, Severity::info, "dlmopen",
        fmt::format("{} can load files into namespaces of their own (dlmopen), where nothing is preloaded",
                    file));
  for (const std::string& missing : program.missing)
    add(facts, Severity::error, "library-not-found", fmt::format("no file for {}", missing),
        "install it, or name its folder in LD_LIBRARY_PATH");
  std::map<std::string, std::map<std::string, std::string>> majors;
  for (const Library& library : program.libraries) {
    const auto [name, major] = parts_of(library.name);
    if (!major.empty()) majors[name].emplace(major, library.file.path);
  }
  for (const auto& [name, found] : majors) {
    if (found.size() < 2) continue;
    std::vector<std::string> files;
    for (const auto& [major, path] : found) files.push_back(path);
    add(facts, Severity::warning, "mixed-cuda-libraries",
        fmt::format("{} is linked to several majors of {}: {}", program.path, name,
                    analysis::enumerate(files)),
        "rebuild all of it with one toolkit");
  }
}

}  // namespace kshim::doctor
