// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace kshim::scan {
namespace {

constexpr std::size_t kFirst = 1U << 20;
constexpr std::size_t kStep = 16U << 20;
constexpr std::size_t kKept = kStep;  // bytes that stay mapped between members, and are not counted

}  // namespace

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
  lease_.lower(counted_);
}

bool Buffer::reserve(std::size_t size) noexcept {
  if (size <= capacity_) return true;
  // Doubling moves page tables, not bytes, and untouched pages cost nothing. Huge pages were tried: on a
  // virtual machine they took three times as long as the small ones.
  const std::size_t wanted = std::max({size, capacity_ * 2, kFirst});
  const std::size_t capacity = (wanted + kFirst - 1) / kFirst * kFirst;
  void* data = data_ == nullptr ? ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                : ::mremap(data_, capacity_, capacity, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  capacity_ = capacity;
  return true;
}

void Buffer::expect(std::uint64_t size) {
  if (size <= kKept || size - kKept <= counted_) return;
  const std::uint64_t more = (size - kKept - counted_ + kStep - 1) / kStep * kStep;
  lease_.raise(more);
  counted_ += more;
}

bool Buffer::append(Bytes bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() > SIZE_MAX / 4 - size_) return false;
  const std::size_t size = size_ + bytes.size();
  expect(size);
  if (!reserve(size)) return false;
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ = size;
  return true;
}

void Buffer::clear() noexcept {
  size_ = 0;
  if (capacity_ > kKept) {
    ::munmap(data_, capacity_);
    data_ = nullptr;
    capacity_ = 0;
  }
  lease_.lower(counted_);
  counted_ = 0;
}

}  // namespace kshim::scan
