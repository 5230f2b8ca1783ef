// SPDX-License-Identifier: Apache-2.0
// Reads ELF files as the dynamic linker has mapped them: symbols, soname, needed libraries, build id. Used
// instead of dlsym and dladdr where the shim looks around on its own, because those leave a dlerror() behind
// and may allocate. Everything read here lies in mapped segments of the object, checked against their bounds.
#pragma once
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::shim {

/// Of a symbol's name, as .gnu.hash has it.
constexpr std::uint32_t gnu_hash(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char character : name) hash = hash * 33 + static_cast<unsigned char>(character);
  return hash;
}

class LoadedElf {
 public:
  LoadedElf() = default;
  LoadedElf(ElfW(Addr) base, const ElfW(Phdr) * headers, std::size_t count) noexcept;

  std::uintptr_t base() const noexcept { return base_; }
  std::uintptr_t low() const noexcept { return low_; }    ///< lowest mapped address
  std::uintptr_t high() const noexcept { return high_; }  ///< one past the highest
  bool contains(std::uintptr_t address) const noexcept;   ///< in one of its loaded segments
  bool is_code(std::uintptr_t address) const noexcept;    ///< in one that can be executed
  bool is_writable(std::uintptr_t address) const noexcept;
  /// Loaded bytes from `address` to the end of its segment; empty when it is not inside.
  Bytes bytes_from(std::uintptr_t address) const noexcept;

  /// A defined dynamic symbol; `version` empty takes any, else the definition must carry exactly that
  /// version. nullptr when there is none.
  void* find_symbol(std::string_view name, std::uint32_t gnu_hash,
                    std::string_view version = {}) const noexcept;
  /// The dynamic symbol that covers `address` (nearest below, within its size); empty when none does.
  std::string_view symbol_at(std::uintptr_t address) const noexcept;
  bool imports(std::string_view name) const noexcept;               ///< has it as an undefined dynamic symbol
  bool has_dynamic_address(std::uintptr_t address) const noexcept;  ///< some exported function starts there
  /// Where the linker bound the imports whose names `wants` answers true for: visit(context, name, address)
  /// for each, until it answers false. One that is not bound yet (lazy) leads back into this object.
  void each_binding(bool (*wants)(std::string_view name),
                    bool (*visit)(void* context, std::string_view name, std::uintptr_t address),
                    void* context) const noexcept;
  std::string_view soname() const noexcept;
  bool needs(std::string_view soname) const noexcept;  ///< lists it as DT_NEEDED
  bool defines_versions() const noexcept { return version_definitions_ != nullptr; }
  bool defines_version(std::string_view version) const noexcept;
  Bytes build_id() const noexcept;

 private:
  bool is_in_segment(std::uintptr_t address, ElfW(Word) flag) const noexcept;
  void read_dynamic(const ElfW(Dyn) * dynamic) noexcept;
  bool is_definition(std::uint32_t symbol, std::string_view name, std::string_view version) const noexcept;
  std::uint32_t find_gnu(std::string_view name, std::uint32_t hash, std::string_view version) const noexcept;
  std::uint32_t find_sysv(std::string_view name, std::string_view version) const noexcept;
  std::uint32_t symbol_count() const noexcept;
  std::uint32_t import_end() const noexcept;  ///< imports have smaller numbers
  std::string_view text_at(std::uint64_t offset) const noexcept;
  bool version_matches(std::uint32_t symbol, std::string_view version) const noexcept;

  std::uintptr_t base_ = 0;
  std::uintptr_t low_ = 0;
  std::uintptr_t high_ = 0;
  const ElfW(Phdr) * headers_ = nullptr;
  std::size_t header_count_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  std::uint64_t strings_size_ = 0;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* sysv_hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const ElfW(Verdef) * version_definitions_ = nullptr;
  std::uint64_t version_definition_count_ = 0;
  struct Relocations {
    const ElfW(Rela) * rows = nullptr;
    std::uint64_t bytes = 0;
  };
  Relocations data_relocations_;
  Relocations call_relocations_;
  std::uint64_t relative_count_ = 0;  // the first of data_relocations_, which name no symbol
  std::uint64_t soname_offset_ = 0;   // 0 = none: the string table begins with an empty string
};

}  // namespace kshim::shim
