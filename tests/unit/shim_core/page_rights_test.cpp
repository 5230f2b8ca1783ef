// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "process/page_protection.h"

namespace kshim::shim {
namespace {

std::optional<int> search(std::string_view text, std::uintptr_t begin, std::uintptr_t end,
                          std::size_t piece = 1) {
  MappingSearch search(begin, end);
  while (!text.empty() && search.feed(text.substr(0, piece)))
    text.remove_prefix(std::min(piece, text.size()));
  return search.rights();
}

constexpr std::string_view kMaps =
    "1000-3000 r--p 00000000 fe:01 77 /a name\n"
    "3000-4000 rw-p 00000000 00:00 0 \n"
    "4000-5000 r-xs 00000000 fe:01 78 /9000-a000 rwxp\n"
    "7f0000001000-7f0000002000 r--p 00000000 00:00 0\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

TEST(MappingSearch, FindsTheMappingThatHoldsAll) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, kMaps.size()}) {
    EXPECT_EQ(search(kMaps, 0x1000, 0x3000, piece), PROT_READ);
    EXPECT_EQ(search(kMaps, 0x3ff8, 0x4000, piece), PROT_READ | PROT_WRITE);
    EXPECT_EQ(search(kMaps, 0x7f0000001008, 0x7f0000001048, piece), PROT_READ);
    EXPECT_EQ(search(kMaps, 0xffffffffff600000, 0xffffffffff600008, piece), PROT_EXEC);
  }
}

TEST(MappingSearch, FindsNothingElsewhere) {
  EXPECT_EQ(search(kMaps, 0x0ff8, 0x1008), std::nullopt);
  EXPECT_EQ(search(kMaps, 0x2ff8, 0x3008), std::nullopt);  // two mappings
  EXPECT_EQ(search(kMaps, 0x4000, 0x4008), std::nullopt);  // shared
  EXPECT_EQ(search(kMaps, 0x9000, 0x9008), std::nullopt);  // a file's name
  EXPECT_EQ(search("", 0x1000, 0x1008), std::nullopt);
  EXPECT_EQ(search("1000-3000 r--p", 0x1000, 0x1008), std::nullopt);  // cut off
  EXPECT_EQ(search("1000-3000\n1000 r\n\n-\nz-z ----\n", 0x1000, 0x1008), std::nullopt);
}

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

TEST(ScopedWritable, GivesBackWhatWasThere) {
  const Pages pages(PROT_READ);
  ASSERT_FALSE(pages.writable());
  {
    const ScopedWritable writable(pages.middle() + 8, pages.middle() + 72);
    ASSERT_TRUE(writable) << writable.refusal();
    EXPECT_TRUE(pages.writable());
  }
  EXPECT_FALSE(pages.writable());
}

TEST(ScopedWritable, LeavesWritablePagesAsTheyAre) {
  const Pages pages(PROT_READ | PROT_WRITE);
  { EXPECT_TRUE(ScopedWritable(pages.middle(), pages.middle() + 8)); }
  EXPECT_TRUE(pages.writable());
}

TEST(ScopedWritable, RefusesCodeAndWhatIsNotThere) {
  const Pages code(PROT_READ | PROT_EXEC);
  EXPECT_FALSE(ScopedWritable(code.middle(), code.middle() + 8));
  EXPECT_FALSE(code.writable());
  const Pages pages(PROT_READ);
  EXPECT_FALSE(ScopedWritable(pages.middle() - 8, pages.middle() + 8));  // two mappings
  EXPECT_FALSE(pages.writable());
  EXPECT_FALSE(ScopedWritable(8, 16));
}

}  // namespace
}  // namespace kshim::shim
