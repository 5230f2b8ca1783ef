// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/machine/machine.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analyzer/data/knowledge.h"
#include "analyzer/input/machine/facts.h"
#include "analyzer/owner/bounded.h"
#include "kshim/files/open_file.h"

namespace kshim::input {
using core::basename_of;
using core::contains;
using core::split;
using device_code::elf_facts;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNames = 4096;

/// "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36." stands in libc.so.6 itself.
std::string glibc_of(const Machine& machine, const Loader& loader) {
  if (machine.live()) return gnu_get_libc_version();
  const auto found = loader.find("libc.so.6");
  if (!found) return {};
  constexpr std::size_t kMax = std::size_t{8} << 20;
  constexpr std::string_view kMark = "stable release version ";
  const std::string text = machine.read(found->path, kMax);
  const std::size_t at = text.find(kMark);
  if (at == std::string::npos) return {};
  const std::size_t end = text.find_first_not_of("0123456789.", at + kMark.size());
  std::string version = text.substr(at + kMark.size(), end - at - kMark.size());
  while (version.ends_with('.')) version.pop_back();
  return version;
}

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

constexpr std::size_t kMaxFiles = 2000;  // of one program's libraries

struct Open {
  std::string path;
  device_code::ElfFacts file;
};

/// Everything that is loaded before the program's own code runs, breadth first as the linker does it.
void walk_libraries(const Machine& machine, const Loader& loader, const Open& first, Program& program) {
  std::vector<Open> files = {first};
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size() && files.size() < kMaxFiles; ++i) {
    const Open asking = files[i];
    for (const std::string& name : asking.file.needed) {
      if (!seen.insert(name).second) continue;
      const auto found = loader.find(name, asking.path, &asking.file);
      // ld.so itself is there before anything is searched for.
      if (!found && !name.starts_with("ld-linux")) program.missing.push_back({name, asking.path});
      if (!found) continue;
      const auto file = elf_facts(machine.at(found->path));
      if (is_cuda_library(name)) program.libraries.push_back({name, *found, version_in_name(found->real)});
      if (file) files.push_back({found->path, *file});
    }
  }
}

}  // namespace

Machine::Machine(fs::path root, std::map<std::string, std::string> environment)
    : root_(std::move(root)), environment_(std::move(environment)), live_(root_ == "/") {}

std::string_view Machine::env(std::string_view name) const {
  const auto found = environment_.find(std::string(name));
  return found == environment_.end() ? std::string_view() : std::string_view(found->second);
}

bool Machine::has_env(std::string_view name) const { return environment_.count(std::string(name)) != 0; }

std::string Machine::real(std::string_view path) const {
  if (path.substr(0, 1) != "/" || contains(path, '\0')) return {};
  const auto below = owner::resolve_in(root_, path);
  return below ? ("/" / *below).string() : std::string();
}

fs::path Machine::at(std::string_view path) const {
  const std::string there = real(path);
  return there.empty() ? fs::path() : root_ / fs::path(there).relative_path();
}

bool Machine::is_folder(std::string_view path) const {
  std::error_code error;
  const fs::path there = at(path);
  return !there.empty() && fs::is_directory(there, error);
}

bool Machine::is_file(std::string_view path) const {
  std::error_code error;
  const fs::path there = at(path);
  return !there.empty() && fs::is_regular_file(there, error);
}

bool Machine::is_executable(std::string_view path) const {
  if (!is_file(path)) return false;
  std::error_code error;
  const fs::perms rights = fs::status(at(path), error).permissions();
  constexpr fs::perms kAny = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  return !error && (rights & kAny) != fs::perms::none;
}

std::string Machine::read(std::string_view path, std::size_t most) const {
  if (!is_file(path)) return {};
  return files::read_up_to(at(path), most).value_or("");
}

std::vector<std::string> Machine::names(std::string_view folder) const {
  std::vector<std::string> out;
  std::error_code error;
  const fs::path there = at(folder);
  if (there.empty()) return out;
  for (fs::directory_iterator entry(there, error), end; !error && entry != end && out.size() < kMaxNames;
       entry.increment(error))
    out.push_back(entry->path().filename().string());
  std::ranges::sort(out);
  return out;
}

std::string join_path(std::string_view folder, std::string_view name) {
  while (folder.size() > 1 && folder.back() == '/') folder.remove_suffix(1);
  return std::string(folder) + (folder == "/" ? "" : "/") + std::string(name);
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t mark = text.find('=');
    if (mark != std::string_view::npos) out.emplace(text.substr(0, mark), text.substr(mark + 1));
  }
  // ld.so(8): parts that are no absolute paths begin in the working directory.
  const auto folders = out.find("LD_LIBRARY_PATH");
  if (folders == out.end()) return out;
  std::string whole;
  for (const std::string& folder : split(folders->second, ":;")) {
    if (!whole.empty()) whole += ':';
    whole += folder.empty() ? std::string() : std::filesystem::absolute(folder).lexically_normal().string();
  }
  folders->second = whole;
  return out;
}

Machine this_machine() { return {"/", own_environment()}; }

std::string pretty_name(std::string_view os_release) {
  for (const std::string& line : split(os_release, "\n")) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    std::string_view value = core::trim(std::string_view(line).substr(kKey.size()));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return {};
}

System look_at_system(const Machine& machine, const Loader& loader) {
  System out;
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"})
    if (out.os.empty()) out.os = pretty_name(machine.read(file));
  out.glibc = glibc_of(machine, loader);
  struct utsname name {};
  if (machine.live() && ::uname(&name) == 0) {
    out.kernel = name.release;
    out.machine = name.machine;
  }
  return out;
}

std::string version_in_name(std::string_view path) {
  const std::string_view name = basename_of(path);
  const std::size_t mark = name.find(".so.");
  if (mark == std::string_view::npos) return {};
  const std::string_view version = name.substr(mark + 4);
  return !contains(version, '.') ? std::string() : std::string(version);
}

bool is_cuda_library(std::string_view name) {
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-ml.so") ||
         (contains(name, ".so") && data::find_vendor_library(name) != nullptr);
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

std::vector<Library> mapped_libraries(const Machine& machine, const RunningProcess& process) {
  std::vector<Library> out;
  for (const std::string& path : process.mapped) {
    if (!is_cuda_library(basename_of(path))) continue;
    const auto file = elf_facts(machine.at(path));
    std::string soname = file && !file->soname.empty() ? file->soname : std::string(basename_of(path));
    out.push_back({std::move(soname), {path, path, "mapped"}, version_in_name(path)});
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
      const auto file = preload.there ? elf_facts(machine.at(entry)) : std::nullopt;
      const std::string_view name = basename_of(entry);
      if (name == "libkshim.so") {
        preload.note = "the shim";
      } else if (name.starts_with("libasan.") || name.starts_with("libtsan.") ||
                 name.starts_with("libclang_rt.")) {
        preload.note = "a sanitizer's runtime, which must stand before libkshim.so";
      } else if (file && !file->same_class) {
        preload.note = "of another word size or machine";
      } else if (file && file->defines_dlsym) {
        preload.has_dlsym = true;
        preload.note = "stands in for dlsym, as libkshim.so does: whichever comes first is asked first";
      }
    }
    out.push_back(std::move(preload));
  }
  return out;
}

Program look_at_program(const Machine& machine, const Loader& loader, const std::string& name) {
  Program program;
  program.path = !contains(name, '/') ? in_path(machine, name) : name;
  if (program.path.empty()) {
    program.path = name;
    return program;
  }
  const auto executable = device_code::follow_scripts(
      program.path, program.chain,
      [&](const std::string& path) {
        return machine.is_file(path) ? device_code::inspect(machine.at(path)) : std::nullopt;
      },
      [&](const std::string& name_in_path) { return in_path(machine, name_in_path); });
  program.found = executable.has_value();
  if (!program.found) return program;
  program.elf = executable->kind == device_code::Executable::Kind::elf;
  const auto file = elf_facts(machine.at(program.path));
  program.library = program.elf && file && file->same_class && file->is_library;
  if (!program.library) program.blind = blind_reason(*executable);
  if (file && file->same_class && (program.library || !executable->loader.empty()))
    walk_libraries(machine, loader, {program.path, *file}, program);
  return program;
}

}  // namespace kshim::input
