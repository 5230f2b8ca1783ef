// SPDX-License-Identifier: Apache-2.0
#include "process/stack/unwind_tables.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

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

}  // namespace
}  // namespace kshim::shim
