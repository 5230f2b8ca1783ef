// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/elf_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "analyzer/run/program.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

constexpr int kScriptDepth = 5;  // Linux follows at most 5 (BINPRM recursion, fs/exec.c)

bool read_at(int file, std::uint64_t offset, char* out, std::size_t size) {
  return files::read_at(file, offset, {out, size}) == size;
}

std::string read_string(int file, std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
  std::string text(static_cast<std::size_t>(std::min(size, limit)), '\0');
  return read_at(file, offset, text.data(), text.size()) ? text : std::string();
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

// DT_STRTAB is an address, so the string table is found by its section header; a stripped one (sstrip) is
// taken for "does not say".
bool names_asan(int file, const Elf64_Ehdr& header) {
  constexpr std::uint64_t kMostStrings = 16U << 20U;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read_at(file, header.e_shoff + i * sizeof section, reinterpret_cast<char*>(&section),
                 sizeof section))
      break;
    if (section.sh_type != SHT_STRTAB || (section.sh_flags & SHF_ALLOC) == 0) continue;
    const std::string strings = read_string(file, section.sh_offset, section.sh_size, kMostStrings);
    return strings.find("libasan.so") != std::string::npos ||
           strings.find("libclang_rt.asan") != std::string::npos;
  }
  return false;
}

// A file that ends within its headers stays Kind::other: the kernel refuses it, and that says enough.
void read_elf(int file, Executable& executable) {
  Elf64_Ehdr header{};
  if (!read_at(file, 0, reinterpret_cast<char*>(&header), offsetof(Elf64_Ehdr, e_version))) return;
  executable.same_class = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
  if (!executable.same_class) {
    executable.kind = Executable::Kind::elf;
    return;
  }
  if (!read_at(file, 0, reinterpret_cast<char*>(&header), sizeof header)) return;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program{};
    if (!read_at(file, header.e_phoff + i * sizeof program, reinterpret_cast<char*>(&program),
                 sizeof program))
      return;
    if (program.p_type != PT_INTERP) continue;
    executable.loader = read_string(file, program.p_offset, program.p_filesz, 4096).c_str();
  }
  executable.kind = Executable::Kind::elf;
  executable.wants_asan = names_asan(file, header);
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

std::optional<Executable> inspect(const fs::path& path) {
  const files::OpenFile opened = files::open_to_read(path);
  const int file = opened.fd.get();
  std::array<char, 4> magic{};
  if (!opened || !read_at(file, 0, magic.data(), magic.size())) return std::nullopt;
  Executable executable;
  executable.gains_rights = gains_rights(path);
  if (std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0) {
    read_elf(file, executable);
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
