// SPDX-License-Identifier: Apache-2.0
// A small ELF program or library with an interpreter and a dynamic section.
#pragma once
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::test {

#if defined(__x86_64__)
inline constexpr std::uint16_t kOwnMachine = EM_X86_64;
inline constexpr std::uint16_t kOtherMachine = EM_AARCH64;
#else
inline constexpr std::uint16_t kOwnMachine = EM_AARCH64;
inline constexpr std::uint16_t kOtherMachine = EM_X86_64;
#endif

/// Fields may be changed before bytes() is called. Everything lies at the address that is its offset.
struct DynamicElf {
  static constexpr std::size_t kPrograms = 3;  ///< what is loaded, the interpreter, the dynamic section
  Elf64_Ehdr header{};
  Elf64_Phdr programs[kPrograms]{};
  std::vector<Elf64_Dyn> dynamic;
  std::string loader;
  std::string strings{'\0'};

  explicit DynamicElf(std::string_view loader_path, const std::vector<std::string>& needed = {})
      : loader(std::string(loader_path) + '\0') {
    for (const std::string& name : needed) {
      dynamic.push_back({.d_tag = DT_NEEDED, .d_un = {.d_val = strings.size()}});
      strings += name + '\0';
    }
    const std::uint64_t dynamic_at = sizeof header + sizeof programs;
    const std::uint64_t loader_at = dynamic_at + (dynamic.size() + 2) * sizeof(Elf64_Dyn);
    const std::uint64_t strings_at = loader_at + loader.size();
    dynamic.push_back({.d_tag = DT_STRTAB, .d_un = {.d_ptr = strings_at}});
    dynamic.push_back({.d_tag = DT_NULL, .d_un = {.d_val = 0}});
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = kOwnMachine;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = kPrograms;
    put(programs[0], PT_LOAD, 0, strings_at + strings.size());
    put(programs[1], loader_path.empty() ? PT_NULL : PT_INTERP, loader_at, loader.size());
    put(programs[2], PT_DYNAMIC, dynamic_at, dynamic.size() * sizeof(Elf64_Dyn));
  }
  std::string bytes() const {
    std::string out;
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(reinterpret_cast<const char*>(programs), sizeof programs);
    out.append(reinterpret_cast<const char*>(dynamic.data()), dynamic.size() * sizeof(Elf64_Dyn));
    return out + loader + strings;
  }

 private:
  static void put(Elf64_Phdr& program, std::uint32_t type, std::uint64_t at, std::uint64_t size) {
    program.p_type = type;
    program.p_offset = program.p_vaddr = at;
    program.p_filesz = program.p_memsz = size;
  }
};

}  // namespace kshim::test
