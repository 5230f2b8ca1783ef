// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/elf_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "analyzer/core/text.h"
#include "analyzer/device_code/mapped_file.h"
#include "kshim/files/open_file.h"
#include "kshim/image/elf.h"

namespace kshim::device_code {
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
  constexpr std::size_t kMax = 4096;  // Linux reads 255
  std::string line(kMax, '\0');
  line.resize(files::read_at(file, 2, line).value_or(0));
  line.resize(std::min(line.size(), line.find('\n')));
  const std::string_view text = core::trim(line);
  const std::size_t space = text.find_first_of(" \t");
  executable.interpreter = text.substr(0, space);
  if (space != std::string_view::npos) executable.argument = core::trim(text.substr(space));
}

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// Kind::other where there is none.
Executable resolve(const fs::path& path) {
  std::string at = path.string();
  std::vector<std::string> scripts;
  const auto search = [](const std::string& name) { return search_path(name).value_or("").string(); };
  return follow_scripts(
             at, scripts, [](const std::string& file) { return inspect(file); }, search)
      .value_or(Executable{});
}

}  // namespace

std::optional<Executable> follow_scripts(
    std::string& path, std::vector<std::string>& scripts,
    const std::function<std::optional<Executable>(const std::string&)>& look,
    const std::function<std::string(const std::string&)>& search) {
  for (int depth = 0; depth <= kScriptDepth; ++depth) {
    auto executable = look(path);
    if (!executable || executable->kind != Executable::Kind::script) return executable;
    scripts.push_back(path);
    path = executable->interpreter;
    std::string_view name = executable->argument;
    if (core::basename_of(path) != "env" || name.empty()) continue;
    if (name.starts_with("-S ")) name.remove_prefix(3);
    if (std::string found = search(std::string(name.substr(0, name.find(' ')))); !found.empty())
      path = std::move(found);
  }
  return std::nullopt;
}

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
    const auto facts = elf_facts(path);
    if (!facts) return executable;
    executable.kind = Executable::Kind::elf;
    executable.same_class = facts->same_class;
    executable.loader = facts->loader;
    executable.wants_asan = std::ranges::any_of(facts->needed, [](const std::string& name) {
      return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
    });
  } else if (magic[0] == '#' && magic[1] == '!') {
    read_script(file, executable);
    executable.gains_rights = false;  // Linux ignores setuid on scripts
  }
  return executable;
}

std::string blind_reason(const fs::path& path) { return blind_reason(resolve(path)); }

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
  const Executable executable = resolve(path);
  return executable.kind == Executable::Kind::elf &&
         (!executable.same_class || executable.loader.find("musl") != std::string::npos);
}

bool wants_asan(const fs::path& path) { return resolve(path).wants_asan; }

namespace {

constexpr std::size_t kMaxEntries = 65536;
constexpr std::size_t kMaxNeeded = 1024;
constexpr std::size_t kMaxName = 4096;
constexpr std::uint64_t kMaxSymbols = 1U << 20U;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

std::string first_text(Bytes bytes) {
  const std::string_view text = text_of(bytes).substr(0, kMaxName);
  return std::string(text.substr(0, text.find('\0')));
}

std::string text_at(const image::ElfReader& elf, std::uint64_t address) {
  const auto bytes = elf.from_address(address);
  return bytes ? first_text(*bytes) : std::string();
}

struct Symbols {
  std::uint64_t table = 0;
  std::uint64_t strings = 0;
};

// The table of symbols has no length of its own; in what linkers write the strings stand behind it.
void read_symbols(const image::ElfReader& elf, const Symbols& where, ElfFacts& out) {
  if (where.table == 0 || where.strings <= where.table) return;
  const std::uint64_t count =
      std::min(kMaxSymbols, (where.strings - where.table) / std::uint64_t{sizeof(Elf64_Sym)});
  const auto rows = elf.at_address(where.table, count * sizeof(Elf64_Sym));
  const auto names = elf.from_address(where.strings);
  if (!rows || !names) return;
  for (std::uint64_t i = 1; i < count; ++i) {
    const auto row = read_le<Elf64_Sym>(*rows, i * sizeof(Elf64_Sym));
    if (!row || row->st_name >= names->size()) continue;
    const std::string_view name = text_of(names->subspan(row->st_name)).substr(0, 6);
    if (row->st_shndx != SHN_UNDEF && name == std::string_view("dlsym\0", 6)) out.defines_dlsym = true;
  }
}

/// True for an executable that is linked to run at any address, static ones among them.
bool read_entries(const image::ElfReader& elf, Bytes entries, ElfFacts& out) {
  bool pie = false;
  Symbols symbols;
  std::vector<std::pair<std::int64_t, std::uint64_t>> texts;
  for (std::size_t i = 0; i < kMaxEntries; ++i) {
    const auto entry = read_le<Elf64_Dyn>(entries, i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_FLAGS_1) pie = (entry->d_un.d_val & DF_1_PIE) != 0;
    if (entry->d_tag == DT_STRTAB) symbols.strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols.table = entry->d_un.d_ptr;
    if (entry->d_tag == DT_NEEDED || entry->d_tag == DT_SONAME || entry->d_tag == DT_RPATH ||
        entry->d_tag == DT_RUNPATH)
      texts.emplace_back(entry->d_tag, entry->d_un.d_val);
  }
  for (const auto& [tag, offset] : texts) {
    const std::string text = text_at(elf, symbols.strings + offset);
    if (tag == DT_NEEDED && out.needed.size() < kMaxNeeded) out.needed.push_back(text);
    if (tag == DT_SONAME) out.soname = text;
    if (tag == DT_RPATH) out.rpath = core::split(text, ":");
    if (tag == DT_RUNPATH) out.runpath = core::split(text, ":");
  }
  if (!out.runpath.empty()) out.rpath.clear();
  read_symbols(elf, symbols, out);
  return pie;
}

}  // namespace

std::optional<ElfFacts> elf_facts(Bytes file) {
  if (file.size() < EI_NIDENT || text_of(file.first(SELFMAG)) != std::string_view(ELFMAG, SELFMAG))
    return std::nullopt;
  ElfFacts out;
  const auto elf = image::ElfReader::open_damaged(file);
  if (!elf && elf.error().code == Errc::truncated) return std::nullopt;
  out.same_class = elf && elf->machine() == kMachine;
  if (!out.same_class) return out;
  const auto segments = read_le<std::uint16_t>(file, offsetof(Elf64_Ehdr, e_phnum));
  if (elf->segment_count() == 0 && segments.value_or(0) != 0) return std::nullopt;
  bool pie = false;
  for (std::uint32_t i = 0; i < elf->segment_count(); ++i) {
    const auto segment = elf->segment(i);
    if (!segment) return std::nullopt;
    if (segment->type == PT_INTERP)
      if (const auto name = slice(file, segment->offset, segment->file_size)) out.loader = first_text(*name);
    if (segment->type != PT_DYNAMIC) continue;
    if (const auto entries = elf->at_address(segment->address, segment->file_size))
      pie = read_entries(*elf, *entries, out);
  }
  out.is_library = elf->type() == ET_DYN && out.loader.empty() && !pie;
  return out;
}

std::optional<ElfFacts> elf_facts(const std::filesystem::path& path) {
  const auto mapped = MappedFile::open(path);
  const auto* file = std::get_if<MappedFile>(&mapped);
  return file == nullptr ? std::nullopt : elf_facts(file->bytes());
}

bool links_torch(const std::optional<ElfFacts>& file) {
  return file && std::ranges::any_of(file->needed, [](const std::string& name) {
           return name.starts_with("libtorch.so") || name.starts_with("libtorch_") ||
                  name.starts_with("libc10.so") || name.starts_with("libc10_cuda.so");
         });
}

bool lies_beside_torch(std::string_view path) {
  return path.starts_with("torch/") || path.find("/torch/") != std::string_view::npos ||
         path.find("torch_extensions/") != std::string_view::npos;
}

}  // namespace kshim::device_code
