// SPDX-License-Identifier: Apache-2.0
#include "process/page_protection.h"

#include <sys/mman.h>

#include "guest/auxiliary_vector.h"
#include "guest/syscalls.h"

namespace kshim::shim {

ScopedWritable::ScopedWritable(const LoadedElf& elf, std::uintptr_t begin, std::uintptr_t end) noexcept {
  const std::uintptr_t page = auxiliary_value(AT_PAGESZ);
  if (page == 0 || elf.bytes_from(begin).size() < end - begin) {
    refusal_ = "it lies outside of the file";
  } else if (elf.is_code(begin)) {
    refusal_ = "its pages can be executed";
  } else {
    first_ = begin / page * page;
    size_ = (end + page - 1) / page * page - first_;
    const bool constant = !elf.is_writable(begin);
    const std::uintptr_t after = first_ + size_;
    if (!constant && (first_ >= elf.relro_end() || after <= elf.relro_begin())) return;
    give_back_ = constant || (first_ >= elf.relro_begin() && after <= elf.relro_end());
    if (raw::protect(first_, size_, PROT_READ | PROT_WRITE) == 0) return;
    give_back_ = false;
    refusal_ = "the system refuses write access to it";
  }
}

// If this fails, the pages stay writable, which no host depends on.
ScopedWritable::~ScopedWritable() {
  if (give_back_) raw::protect(first_, size_, PROT_READ);
}

}  // namespace kshim::shim
