// SPDX-License-Identifier: Apache-2.0
#include "process/page_protection.h"

#include <elf.h>
#include <sys/mman.h>

#include "guest/auxiliary_vector.h"
#include "guest/own_file.h"
#include "guest/syscalls.h"

namespace kshim::shim {
namespace {

// A line of /proc/self/maps: "7f12a000-7f12c000 r--p 00000000 fe:01 1234 /path".
std::optional<int> rights_of(std::uintptr_t begin, std::uintptr_t end) noexcept {
  constexpr std::size_t kMax = 64U << 20U;  // 65,530 mappings, the kernel's own limit, are a tenth of it
  const OwnFile file(raw::open_file("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  MappingSearch search(begin, end);
  char text[2048];
  std::size_t total = 0;
  while (total <= kMax) {
    const std::size_t got = file.read(total, text, sizeof text);
    if (got == 0 || !search.feed({text, got})) break;
    total += got;
  }
  return search.rights();
}

int digit_of(char character) noexcept {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

}  // namespace

void MappingSearch::finish_line() noexcept {
  if (low_ <= begin_ && begin_ < high_) {
    done_ = true;
    if (end_ <= high_ && private_) found_ = bits_;
  }
  low_ = high_ = 0;
  column_ = right_ = 0;
  bits_ = 0;
  private_ = false;
}

bool MappingSearch::feed(std::string_view text) noexcept {
  for (const char character : text) {
    if (done_) break;
    if (character == '\n') {
      finish_line();
    } else if (column_ < 2) {
      const int digit = digit_of(character);
      std::uintptr_t& address = column_ == 0 ? low_ : high_;
      if (digit < 0)
        ++column_;
      else
        address = address << 4U | static_cast<std::uintptr_t>(digit);
    } else if (column_ == 2) {
      if (right_ == 0 && character == 'r') bits_ |= PROT_READ;
      if (right_ == 1 && character == 'w') bits_ |= PROT_WRITE;
      if (right_ == 2 && character == 'x') bits_ |= PROT_EXEC;
      if (right_ == 3) private_ = character == 'p';
      if (++right_ == 4) ++column_;
    }
  }
  return !done_;
}

ScopedWritable::ScopedWritable(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const std::uintptr_t page = auxiliary_value(AT_PAGESZ);
  // The kernel writes the list while the process changes it: a line may be missing once.
  constexpr int kLooks = 16;
  std::optional<int> rights;
  for (int looks = 0; looks < kLooks && !rights; ++looks) rights = rights_of(begin, end);
  if (page == 0 || !rights) {
    refusal_ = "the rights of its pages are not known";
  } else if ((*rights & PROT_EXEC) != 0) {
    refusal_ = "its pages can be executed";
  } else if ((*rights & PROT_WRITE) == 0) {
    first_ = begin / page * page;
    size_ = (end + page - 1) / page * page - first_;
    if (raw::protect(first_, size_, PROT_READ | PROT_WRITE) == 0)
      rights_ = *rights;
    else
      refusal_ = "the system refuses write access to it";
  }
}

// If this fails, the pages stay writable, which no host depends on.
ScopedWritable::~ScopedWritable() {
  if (rights_ >= 0) raw::protect(first_, size_, rights_);
}

}  // namespace kshim::shim
