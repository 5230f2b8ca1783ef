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
constexpr std::size_t kKept = 16U << 20;  // bytes that stay between members

}  // namespace

void Buffer::drop() noexcept {
  if (file_.exists() && data_ != nullptr) ::munmap(data_, capacity_);
  if (!file_.exists()) std::free(data_);
  data_ = nullptr;
  capacity_ = 0;
}

bool Buffer::append(Bytes bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() > SIZE_MAX / 4 - size_) return false;
  // Without a folder for temporary files memory holds it.
  if (UnnamedFile file; !file_.exists() && size_ + bytes.size() > most_memory_ && file.create()) {
    const bool moved = file.append(Bytes(data_, size_));
    drop();
    file_ = std::move(file);
    if (!moved) return false;
  }
  if (file_.exists()) {
    drop();
    if (!file_.append(bytes)) return false;
  } else {
    if (size_ + bytes.size() > capacity_) {
      // Large blocks are pages of their own, which realloc() moves without touching them.
      const std::size_t capacity = std::max({size_ + bytes.size(), capacity_ * 2, kFirst});
      void* const data = std::realloc(data_, capacity);
      if (data == nullptr) return false;
      data_ = static_cast<std::byte*>(data);
      capacity_ = capacity;
    }
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
  if (file_.exists() || capacity_ > kKept) drop();
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
