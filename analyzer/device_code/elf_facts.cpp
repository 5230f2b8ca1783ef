// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/elf_facts.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "analyzer/device_code/mapped_file.h"
#include "kshim/image/elf.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostEntries = 65536;
constexpr std::size_t kMostNeeded = 1024;
constexpr std::size_t kMostName = 4096;
constexpr std::uint64_t kMostSymbols = 1U << 20U;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
    out.emplace_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  out.emplace_back(text);
  return out;
}

std::string first_text(Bytes bytes) {
  const std::string_view text = text_of(bytes).substr(0, kMostName);
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
      std::min(kMostSymbols, (where.strings - where.table) / std::uint64_t{sizeof(Elf64_Sym)});
  const auto rows = elf.at_address(where.table, count * sizeof(Elf64_Sym));
  const auto names = elf.from_address(where.strings);
  if (!rows || !names) return;
  for (std::uint64_t i = 1; i < count; ++i) {
    const auto row = read_le<Elf64_Sym>(*rows, i * sizeof(Elf64_Sym));
    if (!row || row->st_name >= names->size()) continue;
    const std::string_view name = text_of(names->subspan(row->st_name)).substr(0, 8);
    const bool defined = row->st_shndx != SHN_UNDEF;
    if (!defined && name == std::string_view("dlmopen\0", 8)) out.names_dlmopen = true;
    if (defined && name.substr(0, 6) == std::string_view("dlsym\0", 6)) out.defines_dlsym = true;
  }
}

/// True for an executable that is linked to run at any address, static ones among them.
bool read_entries(const image::ElfReader& elf, Bytes entries, ElfFacts& out) {
  bool pie = false;
  Symbols symbols;
  std::vector<std::pair<std::int64_t, std::uint64_t>> texts;
  for (std::size_t i = 0; i < kMostEntries; ++i) {
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
    if (tag == DT_NEEDED && out.needed.size() < kMostNeeded) out.needed.push_back(text);
    if (tag == DT_SONAME) out.soname = text;
    if (tag == DT_RPATH) out.rpath = split(text);
    if (tag == DT_RUNPATH) out.runpath = split(text);
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
  return file && std::any_of(file->needed.begin(), file->needed.end(), [](const std::string& name) {
           return name.starts_with("libtorch.so") || name.starts_with("libtorch_") ||
                  name.starts_with("libc10.so") || name.starts_with("libc10_cuda.so");
         });
}

bool lies_beside_torch(std::string_view path) {
  return path.starts_with("torch/") || path.find("/torch/") != std::string_view::npos ||
         path.find("torch_extensions/") != std::string_view::npos;
}

}  // namespace kshim::analysis
