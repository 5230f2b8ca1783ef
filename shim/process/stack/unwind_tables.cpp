// SPDX-License-Identifier: Apache-2.0
#include "process/stack/unwind_tables.h"

#include <link.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "process/loaded_objects.h"

namespace kshim::shim {
namespace {

// DW_EH_PE_*, "DWARF Exception Header Encoding" (Linux Standard Base, Core).
constexpr std::uint8_t kOmitted = 0xff;
constexpr std::uint8_t kIndirect = 0x80;
constexpr std::uint8_t kRelative = 0x10;  // to the place itself
constexpr std::uint8_t kFormat = 0x0f;
constexpr std::uint8_t kUnsigned4 = 0x03;
constexpr std::uint8_t kRelativeSigned4 = 0x1b;
constexpr std::uint8_t kTableRelativeSigned4 = 0x3b;

/// Bytes of a mapped segment, read in order. `failed` stays set.
class Reader {
 public:
  Reader(const LoadedElf& elf, std::uintptr_t from) noexcept : at_(from), bytes_(elf.bytes_from(from)) {}
  template <class T>
  T read() noexcept {
    T value{};
    if (bytes_.size() < sizeof value) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    skip(sizeof value);
    return value;
  }
  std::uint64_t read_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    failed_ = true;
    return 0;
  }
  void skip(std::uint64_t count) noexcept {
    if (count > bytes_.size()) {
      failed_ = true;
      count = bytes_.size();
    }
    bytes_ = bytes_.subspan(static_cast<std::size_t>(count));
    at_ += count;
  }
  /// Limits further reads to `size` bytes.
  void limit(std::uint64_t size) noexcept {
    if (size > bytes_.size())
      failed_ = true;
    else
      bytes_ = bytes_.first(static_cast<std::size_t>(size));
  }
  void fail() noexcept { failed_ = true; }
  std::uintptr_t at() const noexcept { return at_; }
  std::size_t left() const noexcept { return bytes_.size(); }
  bool failed() const noexcept { return failed_; }

 private:
  std::uintptr_t at_;
  Bytes bytes_;
  bool failed_ = false;
};

/// A pointer in one of the encodings that libunwind follows; it gives up at others.
std::uint64_t read_pointer(Reader& reader, std::uint8_t encoding, const LoadedElf& elf) noexcept {
  const std::uintptr_t place = reader.at();
  std::uint64_t value = 0;
  switch (encoding & kFormat) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = reader.read<std::uint64_t>();
      break;
    case 0x01:
    case 0x09:
      value = reader.read_leb();
      break;
    case 0x02:
      value = reader.read<std::uint16_t>();
      break;
    case 0x0a:
      value = static_cast<std::uint64_t>(std::int64_t{reader.read<std::int16_t>()});
      break;
    case kUnsigned4:
      value = reader.read<std::uint32_t>();
      break;
    case 0x0b:
      value = static_cast<std::uint64_t>(std::int64_t{reader.read<std::int32_t>()});
      break;
    default:
      reader.fail();
      return 0;
  }
  const unsigned application = encoding & 0x70U;
  if (application == kRelative)
    value += place;
  else if (application != 0)
    reader.fail();
  if ((encoding & kIndirect) != 0 && elf.bytes_from(value).size() < sizeof value) reader.fail();
  return value;
}

/// What an entry has from the common information entry (CIE) it refers to.
struct Common {
  std::uint8_t pointer_encoding = 0;
  std::uint8_t lsda_encoding = kOmitted;
  bool augmented = false;
};

std::optional<Common> read_common(const LoadedElf& elf, std::uintptr_t at) noexcept {
  Reader reader(elf, at);
  const auto length = reader.read<std::uint32_t>();
  if (length == 0 || length == UINT32_MAX) return {};
  reader.limit(length);
  const auto id = reader.read<std::uint32_t>();
  const auto version = reader.read<std::uint8_t>();
  if (id != 0 || (version != 1 && version != 3)) return {};
  constexpr std::size_t kMaxLetters = 8;
  char letters[kMaxLetters + 1] = {};
  std::size_t count = 0;
  while (const char letter = reader.read<char>()) {
    if (count == kMaxLetters || reader.failed()) return {};
    letters[count++] = letter;
  }
  reader.read_leb();  // code alignment
  reader.read_leb();  // data alignment
  if (version == 1)
    reader.read<std::uint8_t>();  // return address register
  else
    reader.read_leb();
  Common out;
  if (count != 0) {
    if (letters[0] != 'z') return {};
    out.augmented = true;
    const std::uint64_t size = reader.read_leb();
    if (size > reader.left()) return {};
    for (std::size_t i = 1; i < count; ++i) {
      if (letters[i] == 'R')
        out.pointer_encoding = reader.read<std::uint8_t>();
      else if (letters[i] == 'L')
        out.lsda_encoding = reader.read<std::uint8_t>();
      else if (letters[i] == 'P')
        read_pointer(reader, reader.read<std::uint8_t>(), elf);
      else if (letters[i] != 'S' && letters[i] != 'B' && letters[i] != 'G')
        return {};
    }
  }
  if (reader.failed()) return {};
  return out;
}

/// Whether the frame description entry (FDE) at an address is whole and covers `wanted`.
bool is_sound(const LoadedElf& elf, std::uintptr_t entry, std::uintptr_t wanted) noexcept {
  Reader reader(elf, entry);
  const auto length = reader.read<std::uint32_t>();
  if (length == 0 || length == UINT32_MAX) return false;
  reader.limit(length);
  const std::uintptr_t place = reader.at();
  const auto back = reader.read<std::uint32_t>();
  if (reader.failed() || back == 0) return false;
  const std::optional<Common> common = read_common(elf, place - back);
  if (!common) return false;
  const std::uint64_t start = read_pointer(reader, common->pointer_encoding, elf);
  const std::uint64_t size = read_pointer(reader, common->pointer_encoding & kFormat, elf);
  if (common->augmented) {
    const std::uint64_t data = reader.read_leb();
    if (data > reader.left()) return false;
    if (common->lsda_encoding != kOmitted) read_pointer(reader, common->lsda_encoding, elf);
  }
  return !reader.failed() && wanted - start < size;
}

/// The table of .eh_frame_hdr: for each function, in order, its address and that of its entry, both relative
/// to the header.
struct Row {
  std::int32_t function;
  std::int32_t entry;
};

bool has_sound_entry(const LoadedElf& elf, std::uintptr_t header, std::uint64_t header_size,
                     std::uintptr_t wanted) noexcept {
  Reader reader(elf, header);
  reader.limit(header_size);
  const auto version = reader.read<std::uint8_t>();
  const auto frame_encoding = reader.read<std::uint8_t>();
  const auto count_encoding = reader.read<std::uint8_t>();
  const auto table_encoding = reader.read<std::uint8_t>();
  // As all linkers write it; libunwind would search a file without a table from its beginning to its end.
  if (version != 1 || frame_encoding != kRelativeSigned4 || count_encoding != kUnsigned4 ||
      table_encoding != kTableRelativeSigned4)
    return false;
  const std::uint64_t frames = read_pointer(reader, frame_encoding, elf);
  const auto count = reader.read<std::uint32_t>();
  if (reader.failed() || !elf.contains(frames) || count > reader.left() / sizeof(Row)) return false;
  const auto row_at = [&](std::uint32_t index) {
    Row row;
    std::memcpy(&row, reinterpret_cast<const void*>(reader.at() + std::uint64_t{index} * sizeof row),
                sizeof row);
    return row;
  };
  std::uint32_t low = 0;
  std::uint32_t high = count;  // the first function behind the address
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (header + static_cast<std::uint64_t>(std::int64_t{row_at(middle).function}) <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low != 0 &&
         is_sound(elf, header + static_cast<std::uint64_t>(std::int64_t{row_at(low - 1).entry}), wanted);
}

}  // namespace

UnwindTables find_unwind_tables(std::uintptr_t address) noexcept {
  const LoadedElf elf = find_elf_in_use(address);
  UnwindTables out{elf.base(), elf.low(), elf.high(), 0, 0};
  if (elf.high() == 0 || elf.unwind_header() == 0) return out;
  if (!has_sound_entry(elf, elf.unwind_header(), elf.unwind_header_size(), address)) return out;
  out.header = elf.unwind_header();
  out.header_size = elf.unwind_header_size();
  return out;
}

}  // namespace kshim::shim

// Replacements for the C library's functions that libunwind calls (--wrap).
using namespace kshim::shim;
extern "C" {
/// glibc's struct dl_find_object.
struct kshim_found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
[[gnu::visibility("hidden")]] int kshim_find_object(void* address, kshim_found_object* result);
void* __wrap_dlsym(void* handle, const char* name);
int __wrap_dladdr(const void* address, void* info);
int __wrap_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* context);

int kshim_find_object(void* address, kshim_found_object* result) {
  const UnwindTables tables = find_unwind_tables(reinterpret_cast<std::uintptr_t>(address));
  if (tables.high == 0) return -1;
  *result = {};
  result->map_start = reinterpret_cast<void*>(tables.low);
  result->map_end = reinterpret_cast<void*>(tables.high);
  result->eh_frame = reinterpret_cast<void*>(tables.header);
  return 0;
}

/// libunwind looks up only _dl_find_object.
void* __wrap_dlsym(void*, const char* name) {
  return std::string_view(name) == "_dl_find_object" ? reinterpret_cast<void*>(&kshim_find_object) : nullptr;
}

/// libunwind looks names of functions up with it. The shim does not ask for names.
int __wrap_dladdr(const void*, void*) { return 0; }

/// For a libunwind that was built for a C library without _dl_find_object, and for addresses outside of all
/// files. Of libunwind's context only the address that it looks for is read: its third word.
int __wrap_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* context) {
  std::uintptr_t words[3];
  std::memcpy(words, context, sizeof words);
  const UnwindTables tables = find_unwind_tables(words[2]);
  if (tables.header == 0) return 0;
  ElfW(Phdr) headers[2] = {};
  headers[0].p_type = PT_LOAD;
  headers[0].p_flags = PF_R | PF_X;
  headers[0].p_vaddr = tables.low - tables.base;
  headers[0].p_memsz = tables.high - tables.low;
  headers[1].p_type = PT_GNU_EH_FRAME;
  headers[1].p_flags = PF_R;
  headers[1].p_vaddr = tables.header - tables.base;
  headers[1].p_memsz = tables.header_size;
  dl_phdr_info info = {};
  info.dlpi_addr = tables.base;
  info.dlpi_name = "";
  info.dlpi_phdr = headers;
  info.dlpi_phnum = 2;
  return visit(&info, sizeof info, context);
}
}
