// SPDX-License-Identifier: Apache-2.0
#include "process/stack/unwind_tables.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "process/loaded_objects.h"

namespace kshim::shim {
namespace {

TEST(UnwindTables, AreThoseOfTheHeaders) {
  struct Found {
    std::uintptr_t address;
    std::uintptr_t header = 0;
  } found{reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "qsort"))};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& out = *static_cast<Found*>(context);
        bool here = false;
        std::uintptr_t header = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && out.address - start < segment.p_memsz) here = true;
          if (segment.p_type == PT_GNU_EH_FRAME) header = start;
        }
        if (here) out.header = header;
        return here ? 1 : 0;
      },
      &found);
  ASSERT_NE(found.header, 0U);
  EXPECT_EQ(find_unwind_tables(found.address).header, found.header);
}

TEST(UnwindTables, WhatIsNoCodeHasNone) {
  int on_the_stack = 0;
  EXPECT_EQ(find_unwind_tables(reinterpret_cast<std::uintptr_t>(&on_the_stack)).high, 0U);
  const auto data = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_"));
  EXPECT_NE(find_unwind_tables(data).high, 0U);
  EXPECT_EQ(find_unwind_tables(data).header, 0U);
}

// Each byte of a library's .eh_frame_hdr and .eh_frame is damaged in turn. The tables are refused, or given
// as before: nothing faults, and nothing outside of the library is pointed to.
TEST(UnwindTables, DamagedOnesAreRefused) {
  void* const handle = dlopen(KSHIM_TEST_LIBRARY_1, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  const auto address = reinterpret_cast<std::uintptr_t>(dlsym(handle, "probe"));
  const UnwindTables whole = find_unwind_tables(address);
  ASSERT_NE(whole.header, 0U);
  const LoadedElf elf = find_elf_in_use(address);
  const std::uintptr_t first_page = whole.header / 4096 * 4096;
  const std::size_t behind = elf.bytes_from(whole.header).size();
  const std::size_t pages = (whole.header + behind - first_page + 4095) / 4096 * 4096;
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(first_page), pages, PROT_READ | PROT_WRITE), 0);
  auto* const bytes = reinterpret_cast<unsigned char*>(whole.header);
  unsigned refused = 0;
  for (std::size_t i = 0; i < behind; ++i)
    for (const unsigned value : {0x00U, 0x50U, 0x7fU, 0xffU}) {
      const unsigned char kept = bytes[i];
      bytes[i] = static_cast<unsigned char>(value);
      const UnwindTables damaged = find_unwind_tables(address);
      if (damaged.header == 0)
        ++refused;
      else
        EXPECT_EQ(damaged.header, whole.header);
      bytes[i] = kept;
    }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(find_unwind_tables(address).header, whole.header);
  for (const std::size_t encoding : {1U, 2U, 3U}) {
    // 0xff: omitted; 0x50: aligned, which libunwind aborts at.
    for (const unsigned value : {0xffU, 0x50U, 0x20U}) {
      const unsigned char kept = bytes[encoding];
      bytes[encoding] = static_cast<unsigned char>(value);
      EXPECT_EQ(find_unwind_tables(address).header, 0U);
      bytes[encoding] = kept;
    }
  }
  dlclose(handle);
}

}  // namespace
}  // namespace kshim::shim
