// SPDX-License-Identifier: Apache-2.0
#include "guest/clock.h"

#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <string_view>

#include "guest/auxiliary_vector.h"
#include "guest/syscalls.h"

namespace kshim::shim {
namespace {

using ClockFn = int (*)(clockid_t, timespec*);

#if defined(__x86_64__)
constexpr std::string_view kClockName = "__vdso_clock_gettime";
#else
constexpr std::string_view kClockName = "__kernel_clock_gettime";
#endif

/// What the dynamic section of the vDSO points to. Its addresses are link-time addresses.
struct Vdso {
  std::uintptr_t base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
};

std::uint32_t last_of_gnu_hash(const std::uint32_t* hash) noexcept {
  const std::uint32_t* buckets = hash + 4 + std::size_t{hash[2]} * 2;
  const std::uint32_t* chains = buckets + hash[0];
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < hash[0]; ++i)
    if (buckets[i] > last) last = buckets[i];
  if (last < hash[1]) return 0;
  while ((chains[last - hash[1]] & 1U) == 0) ++last;
  return last + 1;
}

Vdso read_vdso(std::uintptr_t base) noexcept {
  Vdso out{base};
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (std::size_t i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_DYNAMIC) continue;
    for (const auto* row = reinterpret_cast<const ElfW(Dyn)*>(base + segments[i].p_vaddr);
         row->d_tag != DT_NULL; ++row) {
      const std::uintptr_t at = base + row->d_un.d_ptr;
      if (row->d_tag == DT_SYMTAB) out.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
      if (row->d_tag == DT_STRTAB) out.strings = reinterpret_cast<const char*>(at);
      if (row->d_tag == DT_HASH) out.sysv_hash = reinterpret_cast<const std::uint32_t*>(at);
      if (row->d_tag == DT_GNU_HASH) out.gnu_hash = reinterpret_cast<const std::uint32_t*>(at);
    }
  }
  return out;
}

/// nullptr where the kernel maps no vDSO (some sandboxes, some tools), or one without this function.
ClockFn find_clock() noexcept {
  const auto base = static_cast<std::uintptr_t>(auxiliary_value(AT_SYSINFO_EHDR));
  if (base == 0) return nullptr;
  const Vdso vdso = read_vdso(base);
  if (vdso.symbols == nullptr || vdso.strings == nullptr) return nullptr;
  const std::uint32_t count = vdso.sysv_hash != nullptr  ? vdso.sysv_hash[1]
                              : vdso.gnu_hash != nullptr ? last_of_gnu_hash(vdso.gnu_hash)
                                                         : 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (vdso.symbols[i].st_shndx != SHN_UNDEF && kClockName == vdso.strings + vdso.symbols[i].st_name)
      return reinterpret_cast<ClockFn>(base + vdso.symbols[i].st_value);
  return nullptr;
}

std::atomic<ClockFn> g_clock{nullptr};
std::atomic<bool> g_searched{false};

}  // namespace

void read_clock(clockid_t clock, timespec& out) noexcept {
  ClockFn function = g_clock.load(std::memory_order_relaxed);
  if (function == nullptr && !g_searched.load(std::memory_order_relaxed)) {
    function = find_clock();
    g_clock.store(function, std::memory_order_relaxed);
    g_searched.store(true, std::memory_order_relaxed);
  }
  if (function != nullptr && function(clock, &out) == 0) return;
  if (raw::call(SYS_clock_gettime, clock, &out) != 0) out = {};
}

std::uint64_t now_nanoseconds() noexcept {
  timespec now{};
  read_clock(CLOCK_MONOTONIC, now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace kshim::shim
