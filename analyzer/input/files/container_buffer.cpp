// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_buffer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace kshim::input {
namespace {

constexpr std::size_t kFirst = 1U << 20;
constexpr std::size_t kKept = 16U << 20;  // bytes that stay mapped between members

}  // namespace

Buffer::~Buffer() { unmap(); }

void Buffer::unmap() noexcept {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(capacity_, 0));
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

bool Buffer::append(Bytes bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() > SIZE_MAX / 4 - size_) return false;
  if (!file_.exists() && size_ + bytes.size() > most_memory_ && file_.create()) {
    const bool moved = file_.append(Bytes(data_, size_));
    unmap();
    if (!moved) return false;
  }
  if (file_.exists()) {
    unmap();
    if (!file_.append(bytes)) return false;
  } else {
    // Without a folder for temporary files memory holds it.
    if (!reserve(size_ + bytes.size())) return false;
    std::memcpy(data_ + size_, bytes.data(), bytes.size());
  }
  size_ += bytes.size();
  return true;
}

Bytes Buffer::bytes() {
  if (file_.exists() && data_ == nullptr && size_ != 0) {
    void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    if (data == MAP_FAILED) return {};
    data_ = static_cast<std::byte*>(data);
    capacity_ = size_;
  }
  return {data_, size_};
}

void Buffer::clear() noexcept {
  size_ = 0;
  if (file_.exists() || capacity_ > kKept) unmap();
  file_.close();
}

bool UnnamedFile::create() {
  // /tmp is often memory itself.
  const char* folder = ::secure_getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/var/tmp";
  fd_ = files::Descriptor(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_) return true;
  std::string name = std::string(folder) + "/kshim-XXXXXX";  // a file system without O_TMPFILE
  fd_ = files::Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (fd_) ::unlink(name.c_str());
  return exists();
}

bool UnnamedFile::append(Bytes bytes) const {
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd_.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return true;
}

std::filesystem::path UnnamedFile::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

}  // namespace kshim::input
