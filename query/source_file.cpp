// SPDX-License-Identifier: Apache-2.0
#include "query/source_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kshim::query {
namespace {

constexpr std::uint64_t kPage = 4096;
// The largest CUDA library known has under 2 GiB: the linker's model allows no more.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 30U;

Reason identity_of(const struct stat& facts, Identity& out) noexcept {
  if (!S_ISREG(facts.st_mode)) return Reason::not_a_file;
  out.device = facts.st_dev;
  out.inode = facts.st_ino;
  out.size = static_cast<std::uint64_t>(facts.st_size);
  out.modified_seconds = facts.st_mtim.tv_sec;
  out.modified_nanoseconds = facts.st_mtim.tv_nsec;
  out.changed_seconds = facts.st_ctim.tv_sec;
  out.changed_nanoseconds = facts.st_ctim.tv_nsec;
  return Reason::none;
}

/// stat and fstat: not by their names, which glibc's library has since 2.33 alone.
int status_of(int folder, const char* path, int flags, struct stat& out) noexcept {
  return static_cast<int>(::syscall(SYS_newfstatat, folder, path, &out, flags));
}

}  // namespace

Reason identify(const char* path, Identity& out) noexcept {
  struct stat facts {};
  if (status_of(AT_FDCWD, path, 0, facts) != 0) return Reason::cannot_open;
  return identity_of(facts, out);
}

SourceFile::~SourceFile() {
  if (memory_ != nullptr) ::munmap(memory_, static_cast<std::size_t>(identity_.size));
  if (file_ >= 0) ::close(file_);
}

Reason SourceFile::open() noexcept {
  if (file_ >= 0) return trouble_;
  file_ = ::open(path_, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_ < 0) return trouble_ = errno == ENOENT ? Reason::changed : Reason::cannot_open;
  struct stat facts {};
  if (status_of(file_, "", AT_EMPTY_PATH, facts) != 0) return trouble_ = Reason::cannot_read;
  Identity found;
  if (identity_of(facts, found) != Reason::none || !(found == identity_)) return trouble_ = Reason::changed;
  if (found.size > kMaxFileBytes) return trouble_ = Reason::too_large;
  if (found.size == 0) return trouble_ = Reason::unknown_format;
  // Pages that nobody fetches take no memory.
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(found.size), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return trouble_ = Reason::no_memory;
  // Nor would huge ones be any use: what is read is far apart.
  ::madvise(memory, static_cast<std::size_t>(found.size), MADV_NOHUGEPAGE);
  memory_ = static_cast<std::byte*>(memory);
  return trouble_;
}

bool SourceFile::fetch(std::uint64_t offset, std::uint64_t size) noexcept {
  if (trouble_ != Reason::none) return false;
  if (offset >= identity_.size || size == 0) return true;
  const std::uint64_t end = offset + std::min(size, identity_.size - offset);
  if (offset >= last_from_ && end <= last_to_) return true;
  const std::uint64_t from = offset & ~(kPage - 1);  // small things often stand close together
  const std::uint64_t to = std::min((end + kPage - 1) & ~(kPage - 1), identity_.size);
  last_from_ = from;
  last_to_ = to;
  return copy(from, to - from, memory_ + from);
}

bool SourceFile::copy(std::uint64_t offset, std::uint64_t size, std::byte* to) noexcept {
  while (size != 0 && trouble_ == Reason::none) {
    const ssize_t got = ::pread(file_, to, static_cast<std::size_t>(size), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      trouble_ = got == 0 ? Reason::changed : Reason::cannot_read;
      break;
    }
    to += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::uint64_t>(got);
  }
  return trouble_ == Reason::none;
}

void SourceFile::drop(std::uint64_t offset, std::uint64_t size) noexcept {
  const std::uint64_t from = (offset + kPage - 1) & ~(kPage - 1);
  const std::uint64_t to = std::min(offset + size, identity_.size) & ~(kPage - 1);
  if (from >= to) return;
  if (last_from_ < to && from < last_to_) last_from_ = last_to_ = 0;
  ::madvise(memory_ + from, static_cast<std::size_t>(to - from), MADV_DONTNEED);
}

Reason SourceFile::check() noexcept {
  if (file_ < 0 || trouble_ != Reason::none) return trouble_;
  struct stat facts {};
  Identity now;
  if (status_of(file_, "", AT_EMPTY_PATH, facts) != 0) return Reason::cannot_read;
  return identity_of(facts, now) == Reason::none && now == identity_ ? Reason::none : Reason::changed;
}

bool SourceFile::settled() const noexcept {
  // File systems keep time in steps of up to two seconds (FAT); within one, a second write goes unseen.
  constexpr std::int64_t kStep = 3;
  timespec now{};
  if (::clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
  const std::int64_t last = std::max(identity_.modified_seconds, identity_.changed_seconds);
  return last + kStep < now.tv_sec;
}

}  // namespace kshim::query
