// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/elf_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "analyzer/device_code/elf_facts.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kScriptDepth = 5;  // Linux follows at most 5 (BINPRM recursion, fs/exec.c)

bool read_at(int file, std::uint64_t offset, char* out, std::size_t size) {
  return files::read_at(file, offset, {out, size}) == size;
}

// execve(2), AT_SECURE in getauxval(3): the loader drops LD_PRELOAD when the real and the effective ids
// differ, or when the file brings capabilities that the caller does not have.
bool gains_rights(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void read_script(int file, Executable& executable) {
  executable.kind = Executable::Kind::script;
  constexpr std::size_t kMost = 4096;  // Linux reads 255
  std::string line(kMost, '\0');
  line.resize(files::read_at(file, 2, line).value_or(0));
  line.resize(std::min(line.size(), line.find('\n')));
  const auto trim = [](std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::string_view();
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
  };
  const std::string_view text = trim(line);
  const std::size_t space = text.find_first_of(" \t");
  executable.interpreter = text.substr(0, space);
  if (space != std::string_view::npos) executable.argument = trim(text.substr(space));
}

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// The file that runs in the end: through script interpreters, and through `env NAME` in them.
std::optional<fs::path> resolve(fs::path path) {
  for (int depth = 0; depth <= kScriptDepth; ++depth) {
    const std::optional<Executable> executable = inspect(path);
    if (!executable.has_value()) return std::nullopt;
    if (executable->kind != Executable::Kind::script) return path;
    path = executable->interpreter;
    if (path.filename() == "env" && !executable->argument.empty()) {
      std::string_view name = executable->argument;
      if (name.substr(0, 3) == "-S ") name.remove_prefix(3);
      const std::string program(name.substr(0, name.find(' ')));
      const std::optional<fs::path> found = search_path(program);
      if (found.has_value()) path = *found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_in_path(const std::string& name,
                                     const std::function<bool(const fs::path&)>& accept) {
  const char* variable = std::getenv("PATH");
  // What execvp(3) searches without PATH.
  std::string_view folders = variable != nullptr ? variable : "/bin:/usr/bin";
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    fs::path path = folder.empty() ? fs::path(".") / name : fs::path(folder) / name;
    if (accept(path)) return path;
    if (colon == std::string_view::npos) return std::nullopt;
    folders.remove_prefix(colon + 1);
  }
}

std::optional<fs::path> search_path(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_executable(name) ? std::optional<fs::path>(name) : std::nullopt;
  return find_in_path(name, is_executable);
}

std::optional<Executable> inspect(const fs::path& path) {
  const files::OpenFile opened = files::open_to_read(path);
  const int file = opened.fd.get();
  std::array<char, 4> magic{};
  if (!opened || !read_at(file, 0, magic.data(), magic.size())) return std::nullopt;
  Executable executable;
  executable.gains_rights = gains_rights(path);
  if (std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0) {
    // What ends within its headers stays Kind::other: the kernel refuses it, and that says enough.
    const auto facts = analysis::elf_facts(path);
    if (!facts) return executable;
    executable.kind = Executable::Kind::elf;
    executable.same_class = facts->same_class;
    executable.loader = facts->loader;
    executable.wants_asan =
        std::any_of(facts->needed.begin(), facts->needed.end(), [](const std::string& name) {
          return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
        });
  } else if (magic[0] == '#' && magic[1] == '!') {
    read_script(file, executable);
    executable.gains_rights = false;  // Linux ignores setuid on scripts
  }
  return executable;
}

std::string blind_reason(const fs::path& path) {
  const std::optional<fs::path> program = resolve(path);
  const std::optional<Executable> executable = program.has_value() ? inspect(*program) : std::nullopt;
  return executable.has_value() ? blind_reason(*executable) : std::string();
}

std::string blind_reason(const Executable& executable) {
  if (executable.kind != Executable::Kind::elf) return {};
  if (!executable.same_class) return "it is built for another machine or word size than libkshim.so";
  if (executable.loader.empty()) return "it is statically linked, so no loader reads LD_PRELOAD";
  if (executable.loader.find("musl") != std::string::npos)
    return "its C library is musl, and libkshim.so needs glibc";
  if (executable.gains_rights) {
    return "it is setuid, setgid or has file capabilities, so the loader ignores LD_PRELOAD";
  }
  return {};
}

bool must_not_preload(const fs::path& path) {
  const std::optional<fs::path> program = resolve(path);
  const std::optional<Executable> executable = program.has_value() ? inspect(*program) : std::nullopt;
  return executable.has_value() && executable->kind == Executable::Kind::elf &&
         (!executable->same_class || executable->loader.find("musl") != std::string::npos);
}

bool wants_asan(const fs::path& path) {
  const std::optional<fs::path> program = resolve(path);
  const std::optional<Executable> executable = program.has_value() ? inspect(*program) : std::nullopt;
  return executable.has_value() && executable->wants_asan;
}

}  // namespace kshim::cli
