// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_elf.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "guest/safe_memory.h"
#include "kshim/base/gnu_hash.h"
#include "process/scattered_read.h"

namespace kshim::shim {
namespace {

constexpr std::size_t kMaxName = 512;  // longest symbol name that is compared with something
constexpr std::uint32_t kMaxSymbols = 1U << 22U;
constexpr std::size_t kMaxVersions = 4096;
constexpr std::size_t kChunk = 128;  // symbols read at once: 3 KiB of stack

}  // namespace

LoadedElf::LoadedElf(ElfW(Addr) base, const ElfW(Phdr) * headers, std::size_t count, Access access,
                     PageCache* pages) noexcept
    : base_(base), low_(UINTPTR_MAX), access_(access), pages_(pages) {
  for (std::size_t i = 0; i < count; ++i) {
    const ElfW(Phdr)& header = headers[i];
    const std::uintptr_t start = base + header.p_vaddr;
    if (start + header.p_memsz < start) continue;
    switch (header.p_type) {
      case PT_LOAD:
        low_ = std::min<std::uintptr_t>(low_, start);
        high_ = std::max<std::uintptr_t>(high_, start + header.p_memsz);
        [[fallthrough]];
      case PT_NOTE:
        if (segment_count_ < kMaxSegments)
          segments_[segment_count_++] = {start, header.p_memsz, header.p_type, header.p_flags};
        break;
      case PT_DYNAMIC:
        dynamic_ = start;
        dynamic_size_ = header.p_memsz;
        break;
      case PT_GNU_RELRO:
        relro_begin_ = start;
        relro_end_ = start + header.p_memsz;
        break;
      case PT_GNU_EH_FRAME:
        unwind_header_ = start;
        unwind_header_size_ = header.p_memsz;
        break;
      default:
        break;
    }
  }
  if (high_ == 0) low_ = 0;
  if (dynamic_ != 0) read_dynamic();
  pages_ = nullptr;
}

// glibc relocates most of these pointers in place; other linkers, and the vDSO, leave link-time addresses.
void LoadedElf::read_dynamic() noexcept {
  const auto pointer = [this](std::uint64_t value) -> std::uintptr_t {
    if (contains(value)) return value;
    return contains(base_ + value) ? base_ + value : 0;
  };
  constexpr std::size_t kEntries = 64;
  ElfW(Dyn) entries[kEntries];
  const std::uint64_t all = dynamic_size_ / sizeof(ElfW(Dyn));
  for (std::uint64_t done = 0; done < all;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(all - done, kEntries));
    if (!copy(dynamic_ + done * sizeof(ElfW(Dyn)), entries, count * sizeof(ElfW(Dyn)))) break;
    done += count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t value = entries[i].d_un.d_val;
      switch (entries[i].d_tag) {
        case DT_NULL:
          done = all;
          i = count;
          break;
        case DT_SYMTAB:
          symbols_ = pointer(value);
          break;
        case DT_STRTAB:
          strings_ = pointer(value);
          break;
        case DT_STRSZ:
          strings_size_ = value;
          break;
        case DT_GNU_HASH:
          gnu_hash_ = pointer(value);
          break;
        case DT_HASH:
          sysv_hash_ = pointer(value);
          break;
        case DT_VERSYM:
          versions_ = pointer(value);
          break;
        case DT_VERDEF:
          version_definitions_ = pointer(value);
          break;
        case DT_VERDEFNUM:
          version_definition_count_ = value;
          break;
        case DT_RELA:
          data_relocations_.rows = pointer(value);
          break;
        case DT_RELASZ:
          data_relocations_.bytes = value;
          break;
        case DT_RELACOUNT:
          relative_count_ = value;
          break;
        case DT_JMPREL:
          call_relocations_.rows = pointer(value);
          break;
        case DT_PLTRELSZ:
          call_relocations_.bytes = value;
          break;
        case DT_SONAME:
          soname_offset_ = value;
          break;
        default:
          break;
      }
    }
  }
  if (symbols_ == 0 || strings_ == 0) gnu_hash_ = sysv_hash_ = 0;
}

LoadedElf LoadedElf::through(PageCache& pages) const noexcept {
  LoadedElf out = *this;
  out.pages_ = &pages;
  return out;
}

LoadedElf LoadedElf::without_cache() const noexcept {
  LoadedElf out = *this;
  out.pages_ = nullptr;
  return out;
}

bool LoadedElf::contains(std::uintptr_t address) const noexcept { return !bytes_from(address).empty(); }

bool LoadedElf::is_in_segment(std::uintptr_t address, std::uint32_t flag) const noexcept {
  for (std::size_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    if (segment.type == PT_LOAD && (segment.flags & flag) != 0 && address - segment.start < segment.size)
      return true;
  }
  return false;
}

bool LoadedElf::is_code(std::uintptr_t address) const noexcept { return is_in_segment(address, PF_X); }
bool LoadedElf::is_writable(std::uintptr_t address) const noexcept { return is_in_segment(address, PF_W); }

Bytes LoadedElf::bytes_from(std::uintptr_t address) const noexcept {
  for (std::size_t i = 0; i < segment_count_; ++i) {
    const Segment& segment = segments_[i];
    if (segment.type == PT_LOAD && (segment.flags & PF_R) != 0 && address - segment.start < segment.size)
      return {reinterpret_cast<const std::byte*>(address),
              static_cast<std::size_t>(segment.size - (address - segment.start))};
  }
  return {};
}

bool LoadedElf::copy(std::uintptr_t address, void* to, std::size_t size) const noexcept {
  const Bytes bytes = bytes_from(address);
  if (bytes.size() < size) return false;
  if (access_ == Access::direct) {
    std::memcpy(to, bytes.data(), size);
    return true;
  }
  return pages_ != nullptr ? pages_->read(address, to, size) : read_memory(address, to, size);
}

bool LoadedElf::text_is(std::uint64_t offset, std::string_view text) const noexcept {
  char found[kMaxName];
  if (offset >= strings_size_ || text.size() >= strings_size_ - offset || text.size() >= sizeof found)
    return false;
  return copy(strings_ + offset, found, text.size() + 1) && found[text.size()] == 0 &&
         std::memcmp(found, text.data(), text.size()) == 0;
}

bool LoadedElf::copy_text(std::uint64_t offset, char* to, std::size_t room) const noexcept {
  if (strings_ == 0 || offset >= strings_size_) return false;
  constexpr std::size_t kStep = 64;
  const auto whole = static_cast<std::size_t>(std::min<std::uint64_t>(strings_size_ - offset, room));
  for (std::size_t done = 0; done < whole;) {
    const std::size_t part = std::min(whole - done, kStep);
    if (!copy(strings_ + offset + done, to + done, part)) return false;
    if (std::memchr(to + done, 0, part) != nullptr) return true;
    done += part;
  }
  return false;
}

bool LoadedElf::read_symbol(std::uint32_t symbol, ElfW(Sym) & out) const noexcept {
  return symbols_ != 0 && copy(symbols_ + std::uint64_t{symbol} * sizeof out, out);
}

bool LoadedElf::version_matches(std::uint32_t symbol, std::string_view version) const noexcept {
  if (version.empty() || versions_ == 0) return true;
  ElfW(Half) wanted = 0;
  if (!copy(versions_ + std::uint64_t{symbol} * sizeof wanted, wanted)) return false;
  wanted &= 0x7fffU;
  std::uintptr_t at = version_definitions_;
  for (std::uint64_t i = 0; at != 0 && i < std::min<std::uint64_t>(version_definition_count_, kMaxVersions);
       ++i) {
    ElfW(Verdef) definition;
    ElfW(Verdaux) name;
    if (!copy(at, definition)) return false;
    if ((definition.vd_ndx & 0x7fffU) == wanted)
      return copy(at + definition.vd_aux, name) && text_is(name.vda_name, version);
    if (definition.vd_next == 0) break;
    at += definition.vd_next;
  }
  return false;
}

bool LoadedElf::defines_version(std::string_view version) const noexcept {
  std::uintptr_t at = version_definitions_;
  for (std::uint64_t i = 0; at != 0 && i < std::min<std::uint64_t>(version_definition_count_, kMaxVersions);
       ++i) {
    ElfW(Verdef) definition;
    ElfW(Verdaux) name;
    if (!copy(at, definition) || !copy(at + definition.vd_aux, name)) return false;
    if (text_is(name.vda_name, version)) return true;
    if (definition.vd_next == 0) break;
    at += definition.vd_next;
  }
  return false;
}

bool LoadedElf::is_definition(std::uint32_t symbol, std::string_view name, std::string_view version,
                              Kind kind) const noexcept {
  ElfW(Sym) row;
  if (!read_symbol(symbol, row) || row.st_shndx == SHN_UNDEF || row.st_value == 0) return false;
  if (kind == Kind::function && ELF64_ST_TYPE(row.st_info) != STT_FUNC) return false;
  if (kind == Kind::variable && ELF64_ST_TYPE(row.st_info) != STT_OBJECT) return false;
  return text_is(row.st_name, name) && version_matches(symbol, version);
}

std::uint32_t LoadedElf::find_gnu(std::string_view name, std::uint32_t hash, std::string_view version,
                                  Kind kind) const noexcept {
  const auto word = [this](std::uint64_t index, std::uint32_t& out) {
    return copy(gnu_hash_ + index * sizeof out, out);
  };
  GnuHashTable table;
  if (!GnuHashTable::open(word, table)) return 0;
  return table.find(word, hash,
                    [&](std::uint32_t symbol) { return is_definition(symbol, name, version, kind); });
}

// DT_HASH (System V ABI, "Hash Table"): some vendors' libraries have no other.
std::uint32_t LoadedElf::find_sysv(std::string_view name, std::string_view version,
                                   Kind kind) const noexcept {
  std::uint32_t hash = 0;
  for (const char character : name) {
    hash = (hash << 4U) + static_cast<unsigned char>(character);
    hash ^= (hash & 0xf0000000U) >> 24U;
    hash &= 0x0fffffffU;
  }
  std::uint32_t counts[2];  // of buckets, of symbols
  if (!copy(sysv_hash_, counts) || counts[0] == 0) return 0;
  const std::uintptr_t buckets = sysv_hash_ + sizeof counts;
  const std::uintptr_t chains = buckets + std::uint64_t{counts[0]} * sizeof(std::uint32_t);
  std::uint32_t symbol = 0;
  if (!copy(buckets + std::uint64_t{hash % counts[0]} * sizeof symbol, symbol)) return 0;
  // A damaged chain may be cyclic.
  for (std::uint32_t steps = 0; symbol != 0 && symbol < counts[1] && steps < counts[1]; ++steps) {
    if (is_definition(symbol, name, version, kind)) return symbol;
    if (!copy(chains + std::uint64_t{symbol} * sizeof symbol, symbol)) return 0;
  }
  return 0;
}

std::uint32_t LoadedElf::find(std::string_view name, std::uint32_t hash, std::string_view version,
                              Kind kind) const noexcept {
  if (gnu_hash_ != 0) return find_gnu(name, hash, version, kind);
  return sysv_hash_ != 0 ? find_sysv(name, version, kind) : 0;
}

void* LoadedElf::find_kind(std::string_view name, std::uint32_t hash, std::string_view version,
                           Kind kind) const noexcept {
  ElfW(Sym) row;
  const std::uint32_t symbol = find(name, hash, version, kind);
  return symbol != 0 && read_symbol(symbol, row) ? reinterpret_cast<void*>(base_ + row.st_value) : nullptr;
}

void* LoadedElf::find_symbol(std::string_view name, std::uint32_t hash,
                             std::string_view version) const noexcept {
  return find_kind(name, hash, version, Kind::any);
}

void* LoadedElf::find_function(std::string_view name, std::uint32_t hash,
                               std::string_view version) const noexcept {
  return find_kind(name, hash, version, Kind::function);
}

void* LoadedElf::find_variable(std::string_view name, std::uint32_t hash) const noexcept {
  return find_kind(name, hash, {}, Kind::variable);
}

namespace {

/// The words of a table, read in blocks: a guarded read is a system call. Fails once `reads` are used up.
class WordBlocks {
 public:
  WordBlocks(const LoadedElf& elf, std::uintptr_t table, std::size_t& reads) noexcept
      : elf_(elf), table_(table), reads_(reads) {}
  bool read(std::uint64_t index, std::uint32_t& out) noexcept {
    if (index < first_ || index - first_ >= count_) {
      const std::uintptr_t from = table_ + index * sizeof out;
      count_ = std::min(elf_.bytes_from(from).size() / sizeof out, kWords);
      first_ = index;
      if (count_ == 0 || reads_ == 0 || !elf_.copy(from, words_, count_ * sizeof out)) {
        count_ = 0;
        return false;
      }
      --reads_;
    }
    out = words_[index - first_];
    return true;
  }

 private:
  static constexpr std::size_t kWords = 256;
  const LoadedElf& elf_;
  std::uintptr_t table_;
  std::size_t& reads_;
  std::uint64_t first_ = 0;
  std::size_t count_ = 0;
  std::uint32_t words_[kWords];
};

constexpr std::size_t kAnyReads = SIZE_MAX;

}  // namespace

// Only the hash tables tell how many dynamic symbols there are.
std::uint32_t LoadedElf::symbol_count(std::size_t& reads) const noexcept {
  std::uint32_t count = 0;
  if (sysv_hash_ != 0) {
    if (!copy(sysv_hash_ + sizeof count, count)) return 0;
  } else if (gnu_hash_ != 0) {
    WordBlocks blocks(*this, gnu_hash_, reads);
    const auto word = [&blocks](std::uint64_t index, std::uint32_t& out) { return blocks.read(index, out); };
    GnuHashTable table;
    if (GnuHashTable::open(word, table)) count = table.symbol_count(word);
  }
  return std::min(count, kMaxSymbols);
}

std::uint32_t LoadedElf::symbol_count() const noexcept {
  std::size_t reads = kAnyReads;
  return symbol_count(reads);
}

namespace {

/// Calls visit(number, symbol) for the symbols 1 to end - 1 until it answers false; reads many at once.
template <class Visit>
void each_symbol(const LoadedElf& elf, std::uintptr_t symbols, std::uint32_t end,
                 const Visit& visit) noexcept {
  ElfW(Sym) rows[kChunk];
  for (std::uint32_t i = 1; i < end;) {
    const std::size_t count = std::min<std::size_t>(end - i, kChunk);
    if (!elf.copy(symbols + std::uint64_t{i} * sizeof rows[0], rows, count * sizeof rows[0])) return;
    for (std::size_t k = 0; k < count; ++k)
      if (!visit(static_cast<std::uint32_t>(i + k), rows[k])) return;
    i += static_cast<std::uint32_t>(count);
  }
}

}  // namespace

void LoadedElf::find_functions(Function* functions, std::size_t count, std::size_t& reads) const noexcept {
  const std::uint32_t end = symbol_count(reads);
  const std::size_t needed = (end + kChunk - 1) / kChunk;
  if (needed > reads) return;
  reads -= needed;
  std::size_t missing = count;
  std::uint64_t lowest = UINT64_MAX;
  std::uint64_t highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lowest = std::min<std::uint64_t>(lowest, functions[i].address - base_);
    highest = std::max<std::uint64_t>(highest, functions[i].address - base_);
  }
  each_symbol(*this, symbols_, end, [&](std::uint32_t, const ElfW(Sym) & row) {
    if (row.st_value > highest || row.st_value + row.st_size <= lowest || row.st_shndx == SHN_UNDEF ||
        ELF64_ST_TYPE(row.st_info) != STT_FUNC)
      return true;
    for (std::size_t i = 0; i < count; ++i) {
      if (functions[i].name != 0 || functions[i].address - base_ - row.st_value >= row.st_size) continue;
      functions[i].name = row.st_name;
      --missing;
    }
    return missing != 0;
  });
}

bool LoadedElf::copy_name(const Function& function, char* name, std::size_t room) const noexcept {
  return function.name != 0 && copy_text(function.name, name, room);
}

bool LoadedElf::has_dynamic_address(std::uintptr_t address) const noexcept {
  bool found = false;
  each_symbol(*this, symbols_, symbol_count(), [&](std::uint32_t, const ElfW(Sym) & row) {
    found = row.st_shndx != SHN_UNDEF && base_ + row.st_value == address;
    return !found;
  });
  return found;
}

// Undefined symbols are not in .gnu.hash (but for functions whose address an executable takes); they come
// before the first hashed one. A table without any hashed symbol says 1 there whatever the number of
// undefined ones: then the string table's start bounds the symbol table. A file with a soname is a library.
std::uint32_t LoadedElf::import_end() const noexcept {
  if (soname_offset_ != 0 && gnu_hash_ != 0) {
    std::uint32_t first = 0;  // hashed symbol: the second word of the table
    if (copy(gnu_hash_ + sizeof first, first) && first > 1) return std::min(first, kMaxSymbols);
  }
  const std::uint32_t count = symbol_count();
  if (sysv_hash_ != 0 || gnu_hash_ == 0 || count > 1) return count;
  return strings_ > symbols_ ? static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                   (strings_ - symbols_) / sizeof(ElfW(Sym)), kMaxSymbols))
                             : count;
}

bool LoadedElf::imports(std::string_view name) const noexcept {
  bool found = false;
  each_symbol(*this, symbols_, import_end(), [&](std::uint32_t, const ElfW(Sym) & row) {
    found = row.st_shndx == SHN_UNDEF && text_is(row.st_name, name);
    return !found;
  });
  return found;
}

namespace {

// A call, a pointer in the offset table, a pointer in data: each holds the address of the symbol.
#if defined(__x86_64__)
constexpr std::uint64_t kPointers[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr std::uint64_t kPointers[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#endif

}  // namespace

template <class Visit>
void LoadedElf::each_pointer(const Visit& visit) const noexcept {
  constexpr std::size_t kRows = 64;
  ElfW(Rela) rows[kRows];
  for (const Relocations* table : {&data_relocations_, &call_relocations_}) {
    if (table->rows == 0) continue;
    const std::uint64_t all =
        std::min<std::uint64_t>(table->bytes, bytes_from(table->rows).size()) / sizeof(ElfW(Rela));
    for (std::uint64_t done = table == &data_relocations_ ? relative_count_ : 0; done < all;) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(all - done, kRows));
      if (!copy(table->rows + done * sizeof rows[0], rows, part * sizeof rows[0])) return;
      done += part;
      for (std::size_t i = 0; i < part; ++i)
        if (std::find(std::begin(kPointers), std::end(kPointers), ELF64_R_TYPE(rows[i].r_info)) !=
                std::end(kPointers) &&
            !visit(rows[i]))
          return;
    }
  }
}

void LoadedElf::each_binding(bool (*wants)(std::string_view), VisitBinding visit,
                             void* context) const noexcept {
  // Few imports are asked for, and most files have none of them: their relocations need not be read then.
  constexpr std::size_t kMaxCount = 128;
  constexpr std::size_t kName = 128;  // no longer name is interposed
  std::uint32_t wanted[kMaxCount];
  std::size_t count = 0;
  each_symbol(*this, symbols_, symbols_ == 0 ? 0 : import_end(), [&](std::uint32_t i, const ElfW(Sym) & row) {
    char name[kName];
    if (row.st_shndx == SHN_UNDEF && copy_text(row.st_name, name, sizeof name) && wants(name))
      wanted[count++] = i;
    return count < kMaxCount;
  });
  if (count == 0) return;
  each_pointer([&](const ElfW(Rela) & pointer) {
    const std::uint64_t symbol = ELF64_R_SYM(pointer.r_info);
    if (symbol < wanted[0] || symbol > wanted[count - 1] ||
        !std::binary_search(wanted, wanted + count, symbol))
      return true;
    std::uintptr_t address = 0;
    ElfW(Sym) row;
    char name[kName];
    return !copy(base_ + pointer.r_offset, address) ||
           !read_symbol(static_cast<std::uint32_t>(symbol), row) ||
           !copy_text(row.st_name, name, sizeof name) ||
           visit(context, name, base_ + pointer.r_offset, address);
  });
}

void LoadedElf::each_own_variable(void (*visit)(void*, const Binding&), void* context) const noexcept {
  each_pointer([&](const ElfW(Rela) & pointer) {
    Binding reference{base_ + pointer.r_offset};
    ElfW(Sym) row;
    if (read_symbol(static_cast<std::uint32_t>(ELF64_R_SYM(pointer.r_info)), row) &&
        row.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(row.st_info) == STT_OBJECT &&
        copy(reference.slot, reference.bound_to)) {
      reference.own = base_ + row.st_value + static_cast<std::uintptr_t>(pointer.r_addend);
      visit(context, reference);
    }
    return true;
  });
}

bool LoadedElf::soname(char* name, std::size_t room) const noexcept {
  return soname_offset_ != 0 && copy_text(soname_offset_, name, room);
}

bool LoadedElf::needs(std::string_view soname) const noexcept {
  constexpr std::size_t kEntries = 64;
  ElfW(Dyn) entries[kEntries];
  const std::uint64_t all = dynamic_size_ / sizeof entries[0];
  for (std::uint64_t done = 0; done < all && !soname.empty();) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(all - done, kEntries));
    if (!copy(dynamic_ + done * sizeof entries[0], entries, count * sizeof entries[0])) return false;
    done += count;
    for (std::size_t i = 0; i < count; ++i) {
      if (entries[i].d_tag == DT_NULL) return false;
      if (entries[i].d_tag == DT_NEEDED && text_is(entries[i].d_un.d_val, soname)) return true;
    }
  }
  return false;
}

BuildId LoadedElf::build_id() const noexcept {
  constexpr std::size_t kNotes = 1024;
  for (std::size_t i = 0; i < segment_count_; ++i) {
    if (segments_[i].type != PT_NOTE) continue;
    std::byte room[kNotes];
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(segments_[i].size, kNotes));
    if (!copy(segments_[i].start, room, size)) continue;
    const Bytes notes(room, size);
    for (std::uint64_t cursor = 0;;) {
      const auto note = read_le<ElfW(Nhdr)>(notes, cursor);
      if (!note) break;
      const std::uint64_t name = cursor + sizeof(ElfW(Nhdr));
      const std::uint64_t data = name + ((note->n_namesz + 3ULL) & ~3ULL);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= BuildId::kMax) {
        const auto owner = slice(notes, name, 4);
        const auto id = slice(notes, data, note->n_descsz);
        if (owner && id && text_of(*owner) == std::string_view("GNU\0", 4)) {
          BuildId out;
          out.size = static_cast<std::uint8_t>(id->size());
          std::memcpy(out.bytes, id->data(), id->size());
          out.address = segments_[i].start + data;
          return out;
        }
      }
      cursor = data + ((note->n_descsz + 3ULL) & ~3ULL);
    }
  }
  return {};
}

}  // namespace kshim::shim
