// SPDX-License-Identifier: Apache-2.0
// Sources: the relocations that ptxas writes for .debug_line; PTX ISA 9.0, .file and .loc.
#include <elfutils/libdw.h>

#include <sstream>

#include "analyzer/core/text.h"
#include "analyzer/device_code/own_process.h"
#include "analyzer/device_code/source_lines.h"
#include "kshim/image/cubin.h"

namespace kshim::device_code {
namespace {

// A cubin of NCCL 2.28 has 600 kernels; 64 MB is a line table of several million rows.
constexpr std::size_t kMaxKernels = 20'000;
constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxRelocations = 100'000;
constexpr std::size_t kMaxFiles = 20'000;
constexpr std::size_t kMaxPathLength = 4096;

using Kernels = std::map<std::string, SourceLine>;
/// Where in .debug_line a kernel's address stands: the address itself is left to the loader.
using Sequences = std::map<std::uint64_t, std::string>;

/// The relocations of .debug_line, of either kind, by the place they are for.
Sequences sequences_of(const image::ElfReader& elf, const image::ElfSection& lines) {
  constexpr std::uint32_t kRela = 4;
  constexpr std::uint32_t kRel = 9;
  Sequences out;
  std::size_t left = kMaxRelocations;
  const auto symbols = elf.section(".symtab");
  if (!symbols) return out;
  for (std::uint32_t index = 1; index < elf.section_count(); ++index) {
    const auto table = elf.section_cut(index);
    if (!table || table->info != lines.index || (table->type != kRel && table->type != kRela)) continue;
    const std::uint64_t size = table->type == kRel ? 16 : 24;
    for (std::uint64_t at = 0; at + size <= table->bytes.size() && left != 0; at += size, --left) {
      const auto offset = read_le<std::uint64_t>(table->bytes, at);
      const auto info = read_le<std::uint64_t>(table->bytes, at + 8);
      if (!offset || !info) break;
      const auto symbol = elf.symbol(*symbols, *info >> 32U);
      if (symbol && !symbol->name.empty()) out.emplace(*offset, symbol->name);
    }
  }
  return out;
}

constexpr unsigned kNumberShift = 32;  // no kernel has 4 GiB of code

/// "NUMBER LINE FILE" for the first row of each sequence. `cubin`: the number of a kernel, from 1, stands in
/// the upper half of its address.
std::string first_rows(std::vector<char> cubin) {
  std::string out;
  elf_version(EV_CURRENT);
  Elf* elf = elf_memory(cubin.data(), cubin.size());
  Dwarf* dwarf = elf == nullptr ? nullptr : dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  Dwarf_CU* unit = nullptr;
  Dwarf_Lines* lines = nullptr;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  std::size_t file_count = 0;
  Dwarf_Off at = 0;
  for (Dwarf_Off next = 0; dwarf != nullptr && dwarf_next_lines(dwarf, at, &next, &unit, &files, &file_count,
                                                                &lines, &count) == 0;
       at = next) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {  // by address
      Dwarf_Line* line = dwarf_onesrcline(lines, i);
      Dwarf_Addr address = 0;
      int number = 0;
      if (dwarf_lineaddr(line, &address) != 0 || address >> kNumberShift == last) continue;
      last = address >> kNumberShift;
      const char* file = dwarf_linesrc(line, nullptr, nullptr);
      if (dwarf_lineno(line, &number) != 0 || number <= 0 || file == nullptr) continue;
      const std::string_view name(file);
      if (last != 0 && name.size() <= kMaxPathLength && name.find('\n') == std::string_view::npos)
        out += std::to_string(last) + ' ' + std::to_string(number) + ' ' + file + '\n';
    }
  }
  return out;
}

// libdw reads the table, in a process of its own: the file may be anybody's.
Kernels of_cubin(Bytes clear) {
  Kernels out;
  const auto cubin = image::CubinReader::open(clear);
  if (!cubin) return out;
  const auto lines = cubin->elf().section(".debug_line");
  if (!lines || lines->bytes.size() > kMaxTableBytes) return out;
  const Sequences sequences = sequences_of(cubin->elf(), *lines);
  if (sequences.empty()) return out;
  const std::string_view text = text_of(clear);
  std::vector<char> copy(text.begin(), text.end());
  const auto table = static_cast<std::uint64_t>(lines->bytes.data() - clear.data());
  std::vector<std::string> names;
  for (const auto& [place, name] : sequences) {
    const std::uint64_t address = std::uint64_t{names.size() + 1} << kNumberShift;
    if (lines->bytes.size() < sizeof(address) || place > lines->bytes.size() - sizeof(address)) continue;
    std::memcpy(copy.data() + table + place, &address, sizeof(address));
    names.push_back(name);
  }
  const ProcessAnswer answer =
      ask_in_own_process([&](int) { return first_rows(std::move(copy)); }, {.cpu_seconds = 10});
  std::istringstream rows(answer.text);
  std::size_t number = 0;
  SourceLine line;
  while (rows >> number >> line.line && rows.ignore() && std::getline(rows, line.file))
    if (number != 0 && number <= names.size()) out.try_emplace(names[number - 1], line);
  return out;
}

/// The next word, and the text behind it.
std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t(,", begin), text.size());
  const std::string_view out = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return out;
}

// `.loc FILE LINE COLUMN` inside an entry, `.file NUMBER "PATH"` anywhere, one directive a line as NVVM
// writes them.
Kernels of_ptx(std::string_view text) {
  std::map<std::string, std::pair<unsigned, unsigned>> places;
  std::map<unsigned, std::string> files;
  std::string kernel;
  if (text.find("\t.loc\t") == std::string_view::npos && text.find(".loc ") == std::string_view::npos)
    return {};
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string_view word = next_word(line);
    while (word == ".visible" || word == ".weak" || word == ".extern") word = next_word(line);
    if (word == ".entry") {
      kernel = next_word(line);
    } else if (word == ".func") {
      kernel.clear();
    } else if (word == ".loc" && !kernel.empty() && places.size() < kMaxKernels) {
      const auto number = core::parse_number<unsigned>(next_word(line));
      const auto row = core::parse_number<unsigned>(next_word(line));
      if (number && row.value_or(0) != 0) places.try_emplace(kernel, *number, *row);
      kernel.clear();
    } else if (word == ".file" && files.size() < kMaxFiles) {
      const auto number = core::parse_number<unsigned>(next_word(line));
      const std::size_t open = line.find('"');
      const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
      if (number && close != std::string_view::npos && close - open - 1 <= kMaxPathLength)
        files.emplace(*number, line.substr(open + 1, close - open - 1));
    }
  }
  Kernels out;
  for (const auto& [name, place] : places) {
    const auto file = files.find(place.first);
    if (file != files.end() && !file->second.empty())
      out.emplace(name, SourceLine{file->second, place.second});
  }
  return out;
}

}  // namespace

Kernels kernel_lines(image::ImageKind kind, Bytes clear) {
  switch (kind) {
    case image::ImageKind::cubin:
      return of_cubin(clear);
    case image::ImageKind::ptx:
      return of_ptx(text_of(clear));
    case image::ImageKind::ltoir:
    case image::ImageKind::tileir:
      break;
  }
  return {};
}

}  // namespace kshim::device_code
