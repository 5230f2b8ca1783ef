// SPDX-License-Identifier: Apache-2.0
#include "process/link_map.h"

#include <elf.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "guest/text_buffer.h"

/// ld.so's own (link.h). A weak reference: musl has none of that name.
[[gnu::weak]] extern r_debug _r_debug;

namespace kshim::shim {
namespace {

/// Whether a program begins right before its headers, as linkers lay it out, and is one that is not moved.
bool is_fixed(const ElfW(Phdr) * headers) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(headers);
  constexpr std::uintptr_t kSmallestPage = 4096;
  if (at % kSmallestPage < sizeof(ElfW(Ehdr))) return false;
  const auto* file = reinterpret_cast<const ElfW(Ehdr)*>(at - sizeof(ElfW(Ehdr)));
  return std::memcmp(file->e_ident, ELFMAG, SELFMAG) == 0 && file->e_type == ET_EXEC;
}

/// The dynamic section of the program itself, where the kernel says that it is; nullptr when it has none, or
/// when nothing says how far it was moved: musl's loader, called as a command, is such a program.
const ElfW(Dyn) * program_dynamic() noexcept {
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = headers == nullptr ? 0 : getauxval(AT_PHNUM);
  ElfW(Addr) base = 0;
  bool known = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_PHDR) continue;
    base = reinterpret_cast<ElfW(Addr)>(headers) - headers[i].p_vaddr;
    known = true;
  }
  if (!known && (count == 0 || !is_fixed(headers))) return nullptr;
  for (std::size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_DYNAMIC) return reinterpret_cast<const ElfW(Dyn)*>(base + headers[i].p_vaddr);
  return nullptr;
}

/// The last object of the list when our constructor ran; nullptr before.
std::atomic<const link_map*> g_last_at_start{nullptr};

}  // namespace

// Asked before all else, also by a host's own getauxval that looks for the next one: by none of libc's
// functions.
const r_debug* linker_debug() noexcept {
  if (const r_debug* own = &_r_debug; own != nullptr && own->r_map != nullptr) return own;
  for (const ElfW(Dyn)* dynamic = program_dynamic(); dynamic != nullptr && dynamic->d_tag != DT_NULL;
       ++dynamic)
    if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr != 0)
      return reinterpret_cast<const r_debug*>(dynamic->d_un.d_ptr);
  return nullptr;
}

const link_map* first_map() noexcept {
  const r_debug* debug = linker_debug();
  return debug == nullptr ? nullptr : debug->r_map;
}

namespace {

std::atomic<bool> g_valgrind{false};

/// What is mapped now came with the program.
[[gnu::constructor]] void note_start() {
  const link_map* map = first_map();
  while (map != nullptr && map->l_next != nullptr) {
    if (map->l_name != nullptr && base_name(map->l_name).starts_with("vgpreload_"))
      g_valgrind.store(true, std::memory_order_relaxed);
    map = map->l_next;
  }
  g_last_at_start.store(map, std::memory_order_relaxed);
}

}  // namespace

bool began_under_valgrind() noexcept { return g_valgrind.load(std::memory_order_relaxed); }

bool came_with_the_program(ElfW(Addr) base) noexcept {
  const link_map* const last = g_last_at_start.load(std::memory_order_relaxed);
  for (const link_map* map = first_map(); map != nullptr; map = map->l_next) {
    if (map->l_addr == base) return true;
    if (map == last) return false;
  }
  return false;
}

}  // namespace kshim::shim
