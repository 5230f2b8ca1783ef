// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/page_protection.h"

namespace kshim::shim {
namespace {

/// Three pages: the middle one has other rights.
class Pages {
 public:
  explicit Pages(int rights) {
    void* all = mmap(nullptr, 3 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_ = reinterpret_cast<std::uintptr_t>(all);
    mprotect(reinterpret_cast<void*>(middle()), size_, rights);
  }
  ~Pages() { munmap(reinterpret_cast<void*>(start_), 3 * size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::uintptr_t middle() const { return start_ + size_; }
  std::size_t size() const { return size_; }
  bool writable() const {
    // The kernel reads a byte into it, or says EFAULT.
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "", 1) != 1) return false;
    const bool done = read(ends[0], reinterpret_cast<void*>(middle() + 8), 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return done;
  }

 private:
  std::size_t size_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::uintptr_t start_ = 0;
};

/// A file whose one segment is these pages.
LoadedElf file_of(const Pages& pages, unsigned flags, bool relocated_only) {
  const ElfW(Phdr) rows[] = {
      {PT_LOAD, flags, 0, pages.middle() - pages.size(), 0, 0, 3 * pages.size(), 1},
      {PT_GNU_RELRO, PF_R, 0, pages.middle(), 0, 0, relocated_only ? pages.size() : pages.size() - 8, 1}};
  return {0, rows, 2, LoadedElf::Access::guarded};
}

TEST(ScopedWritable, GivesBackWhatWasThere) {
  const Pages pages(PROT_READ);
  for (const LoadedElf& elf : {file_of(pages, PF_R, false), file_of(pages, PF_R | PF_W, true)}) {
    ASSERT_FALSE(pages.writable());
    {
      const ScopedWritable writable(elf, pages.middle() + 8, pages.middle() + 72);
      ASSERT_TRUE(writable) << writable.refusal();
      EXPECT_TRUE(pages.writable());
    }
    EXPECT_FALSE(pages.writable());
  }
}

TEST(ScopedWritable, LeavesWritablePagesAsTheyAre) {
  const Pages pages(PROT_READ | PROT_WRITE);
  // The last page of what is read-only after relocation: the linker leaves it writable.
  const LoadedElf elf = file_of(pages, PF_R | PF_W, false);
  { EXPECT_TRUE(ScopedWritable(elf, pages.middle(), pages.middle() + 8)); }
  EXPECT_TRUE(pages.writable());
}

TEST(ScopedWritable, RefusesCodeAndWhatIsNotThere) {
  const Pages pages(PROT_READ);
  EXPECT_FALSE(ScopedWritable(file_of(pages, PF_R | PF_X, false), pages.middle(), pages.middle() + 8));
  const std::uintptr_t end = pages.middle() + 2 * pages.size();
  EXPECT_FALSE(ScopedWritable(file_of(pages, PF_R, false), end - 8, end + 8));
  EXPECT_FALSE(ScopedWritable(file_of(pages, PF_R, false), 8, 16));
  EXPECT_FALSE(pages.writable());
}

}  // namespace
}  // namespace kshim::shim
