// SPDX-License-Identifier: Apache-2.0
// An ELF file as the dynamic linker has mapped it: symbols, needed libraries, relocations, build id. Used
// instead of dlsym and dladdr, which take the dynamic linker's lock, leave a dlerror() behind and may
// allocate. A LoadedElf holds copies of the headers. The tables stay in the file's memory: every access is
// checked against the mapped segments and is a guarded read, so damaged tables, and libraries that another
// thread unloads, give an error and no fault.
#pragma once
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"
#include "kshim/base/gnu_hash.h"

namespace kshim::shim {

using kshim::gnu_hash;

class PageCache;

/// A GNU build id; longer ones than ours are ignored.
struct BuildId {
  static constexpr std::size_t kMax = 20;
  std::byte bytes[kMax] = {};
  std::uint8_t size = 0;
  std::uintptr_t address = 0;  ///< where it lies in the file's memory
  Bytes view() const noexcept { return {bytes, size}; }
};

class LoadedElf {
 public:
  /// How its memory is read. `direct` is for files that cannot be unloaded: the program, libc, the shim.
  enum class Access : std::uint8_t { guarded, direct };
  /// Most that is kept of a file's program headers.
  static constexpr std::size_t kMaxSegments = 16;

  LoadedElf() = default;
  /// `headers` is copied. `pages`: what the dynamic section is read through, or nullptr.
  LoadedElf(ElfW(Addr) base, const ElfW(Phdr) * headers, std::size_t count, Access access,
            PageCache* pages = nullptr) noexcept;

  std::uintptr_t base() const noexcept { return base_; }
  std::uintptr_t low() const noexcept { return low_; }          ///< lowest mapped address
  std::uintptr_t high() const noexcept { return high_; }        ///< one past the highest; 0 = no file
  std::uintptr_t dynamic() const noexcept { return dynamic_; }  ///< address of the dynamic section; 0 = none
  std::uint64_t dynamic_size() const noexcept { return dynamic_size_; }
  /// Loaded segments; of the rest of the address range something else may be mapped.
  template <class Visit>
  void each_segment(const Visit& visit) const noexcept {
    for (std::size_t i = 0; i < segment_count_; ++i)
      if (segments_[i].type == PT_LOAD) visit(segments_[i].start, segments_[i].start + segments_[i].size);
  }
  /// Address of .eh_frame_hdr, and its size; 0 where there is none.
  std::uintptr_t unwind_header() const noexcept { return unwind_header_; }
  std::uint64_t unwind_header_size() const noexcept { return unwind_header_size_; }
  bool contains(std::uintptr_t address) const noexcept;  ///< in one of its loaded segments
  bool is_code(std::uintptr_t address) const noexcept;   ///< in one that can be executed
  bool is_writable(std::uintptr_t address) const noexcept;
  /// What the linker makes read-only after relocation, but for a page that this ends in.
  std::uintptr_t relro_begin() const noexcept { return relro_begin_; }
  std::uintptr_t relro_end() const noexcept { return relro_end_; }
  /// Loaded bytes from `address` to the end of its segment; empty when it is not inside. The caller knows
  /// that the file stays mapped, or reads them with copy().
  Bytes bytes_from(std::uintptr_t address) const noexcept;
  /// Reads bytes that all lie in one segment.
  bool copy(std::uintptr_t address, void* to, std::size_t size) const noexcept;
  template <class T>
  bool copy(std::uintptr_t address, T& to) const noexcept {
    return copy(address, &to, sizeof to);
  }
  /// The same file, read through a cache that outlives the result.
  LoadedElf through(PageCache& pages) const noexcept;
  LoadedElf without_cache() const noexcept;

  /// A defined dynamic symbol; `version` empty takes any, else the definition must carry exactly that
  /// version. nullptr when there is none.
  void* find_symbol(std::string_view name, std::uint32_t gnu_hash,
                    std::string_view version = {}) const noexcept;
  /// The same for functions alone: a variable of that name is not one, nor is a function that the linker
  /// chooses (IFUNC).
  void* find_function(std::string_view name, std::uint32_t gnu_hash,
                      std::string_view version = {}) const noexcept;
  /// The same for variables.
  void* find_variable(std::string_view name, std::uint32_t gnu_hash) const noexcept;
  /// The function that the linker takes from this file for a reference with that version: a file without
  /// versions satisfies references of every version (another preload, a linked-in copy).
  void* find_linked(std::string_view name, std::uint32_t gnu_hash, std::string_view version) const noexcept {
    return find_function(name, gnu_hash, version_definitions_ != 0 ? version : std::string_view());
  }
  /// A code address, and the function in the dynamic symbol table that covers it within its size.
  struct Function {
    std::uintptr_t address = 0;
    std::uint32_t name = 0;  ///< offset for copy_name(); 0 = none
  };
  /// Finds the functions of several addresses in one pass. The symbol table has no index by address, so the
  /// pass is not begun where more than `reads` blocks have to be read; `reads` is what is left then.
  void find_functions(Function* functions, std::size_t count, std::size_t& reads) const noexcept;
  /// False when the name is longer than `room`.
  bool copy_name(const Function& function, char* name, std::size_t room) const noexcept;
  bool imports(std::string_view name) const noexcept;               ///< has it as an undefined dynamic symbol
  bool has_dynamic_address(std::uintptr_t address) const noexcept;  ///< some exported function starts there
  /// Calls visit(context, name, slot, address) for each bound import whose name `wants` accepts, until visit
  /// returns false: `address` is the pointer at `slot`. That of an import that is not bound yet (lazy
  /// binding) lies in this file.
  using VisitBinding = bool (*)(void* context, std::string_view name, std::uintptr_t slot,
                                std::uintptr_t address);
  void each_binding(bool (*wants)(std::string_view name), VisitBinding visit, void* context) const noexcept;
  /// A pointer in this file's tables to a variable that this file defines.
  struct Binding {
    std::uintptr_t slot = 0;      ///< where the pointer lies
    std::uintptr_t bound_to = 0;  ///< what the linker has put there
    std::uintptr_t own = 0;       ///< what it would be with this file's definition
  };
  void each_own_variable(void (*visit)(void* context, const Binding& reference),
                         void* context) const noexcept;
  /// Its DT_SONAME. False where it has none.
  bool soname(char* name, std::size_t room) const noexcept;
  bool needs(std::string_view soname) const noexcept;  ///< lists it as DT_NEEDED
  bool defines_versions() const noexcept { return version_definitions_ != 0; }
  bool defines_version(std::string_view version) const noexcept;
  BuildId build_id() const noexcept;

 private:
  struct Segment {
    std::uint64_t start = 0;  ///< address
    std::uint64_t size = 0;   ///< in memory
    std::uint32_t type = 0;
    std::uint32_t flags = 0;
  };
  struct Relocations {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
  };
  enum class Kind : std::uint8_t { any, function, variable };

  void* find_kind(std::string_view name, std::uint32_t gnu_hash, std::string_view version,
                  Kind kind) const noexcept;
  /// Calls visit(row) for the relocations that hold the address of a symbol, until it answers false.
  template <class Visit>
  void each_pointer(const Visit& visit) const noexcept;
  bool is_in_segment(std::uintptr_t address, std::uint32_t flag) const noexcept;
  void read_dynamic() noexcept;
  bool read_symbol(std::uint32_t symbol, ElfW(Sym) & out) const noexcept;
  std::uint32_t find(std::string_view name, std::uint32_t gnu_hash, std::string_view version,
                     Kind kind) const noexcept;
  std::uint32_t find_gnu(std::string_view name, std::uint32_t hash, std::string_view version,
                         Kind kind) const noexcept;
  std::uint32_t find_sysv(std::string_view name, std::string_view version, Kind kind) const noexcept;
  bool is_definition(std::uint32_t symbol, std::string_view name, std::string_view version,
                     Kind kind) const noexcept;
  bool version_matches(std::uint32_t symbol, std::string_view version) const noexcept;
  bool text_is(std::uint64_t offset, std::string_view text) const noexcept;
  bool copy_text(std::uint64_t offset, char* to, std::size_t room) const noexcept;
  std::uint32_t symbol_count() const noexcept;
  std::uint32_t symbol_count(std::size_t& reads) const noexcept;
  std::uint32_t import_end() const noexcept;  ///< imports have smaller numbers

  std::uintptr_t base_ = 0;
  std::uintptr_t low_ = 0;
  std::uintptr_t high_ = 0;
  Segment segments_[kMaxSegments] = {};
  std::uint8_t segment_count_ = 0;
  Access access_ = Access::guarded;
  PageCache* pages_ = nullptr;
  std::uintptr_t dynamic_ = 0;
  std::uint64_t dynamic_size_ = 0;
  std::uintptr_t relro_begin_ = 0;
  std::uintptr_t relro_end_ = 0;
  std::uintptr_t unwind_header_ = 0;
  std::uint64_t unwind_header_size_ = 0;
  std::uintptr_t symbols_ = 0;
  std::uintptr_t strings_ = 0;
  std::uint64_t strings_size_ = 0;
  std::uintptr_t gnu_hash_ = 0;
  std::uintptr_t sysv_hash_ = 0;
  std::uintptr_t versions_ = 0;
  std::uintptr_t version_definitions_ = 0;
  std::uint64_t version_definition_count_ = 0;
  Relocations data_relocations_;
  Relocations call_relocations_;
  std::uint64_t relative_count_ = 0;  // the first of data_relocations_, which name no symbol
  std::uint64_t soname_offset_ = 0;   // 0 = none: the string table begins with an empty string
};

}  // namespace kshim::shim
