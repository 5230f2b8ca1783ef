// SPDX-License-Identifier: Apache-2.0
// Opens a folder by a path that may lead through folders of other users. "Another user" is neither the caller
// nor root. A link of another user is never followed, because its owner would choose where the caller writes.
// Each step is opened before it is judged, so a path that changes meanwhile gains nothing. No heap; the
// system calls are the caller's: the shim has its own.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace kshim::report {

constexpr bool is_another_user(uid_t owner, uid_t caller) noexcept { return owner != caller && owner != 0; }

struct FolderRequest {
  bool make_missing = false;
  unsigned mode = 0755;   ///< of a folder that is made
  bool any_kind = false;  ///< what the path leads to may be a file
};

/// `System`: static open_at, make_folder_at, read_link_at, status_of, change_mode, as the calls of those
/// names, error() (errno of the last one) and user(); File, which owns a descriptor. Not a member of
/// anything: a walk is one call.
template <class System>
class FolderWalk {
 public:
  /// errno, or 0 with `fd` (O_PATH) open. ELOOP: a link of another user, or too many links.
  static int open(std::string_view path, FolderRequest request, int& fd) noexcept {
    FolderWalk walk;
    return walk.run(path, request, fd);
  }

 private:
  using File = typename System::File;
  static constexpr int kOpen = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  static constexpr std::size_t kMaxLength = 4096;
  static constexpr unsigned kMaxLinks = 40;  // as Linux itself

  int run(std::string_view path, FolderRequest request, int& out) noexcept {
    if (path.size() >= kMaxLength) return ENAMETOOLONG;
    at_ = kMaxLength - path.size();
    copy(path, at_);
    folder_ = File(System::open_at(AT_FDCWD, path.starts_with('/') ? "/" : ".", kOpen | O_DIRECTORY, 0));
    if (folder_.get() < 0) return System::error();
    int error = 0;
    while (error == 0 && next_name()) error = step(request);
    if (error == 0) out = folder_.release();
    return error;
  }

  void copy(std::string_view text, std::size_t to) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) rest_[to + i] = text[i];
  }

  bool is_at_end() const noexcept {
    std::size_t at = at_;
    while (at < kMaxLength && rest_[at] == '/') ++at;  // follow() leaves one
    return at == kMaxLength;
  }

  /// Moves the next component of what is left into name_.
  bool next_name() noexcept {
    while (at_ < kMaxLength && rest_[at_] == '/') ++at_;
    size_ = 0;
    while (at_ < kMaxLength && rest_[at_] != '/' && size_ < sizeof name_ - 1) name_[size_++] = rest_[at_++];
    name_[size_] = 0;
    return size_ != 0;
  }

  int step(FolderRequest request) noexcept {
    if (size_ == sizeof name_ - 1) return ENAMETOOLONG;
    int fd = System::open_at(folder_.get(), name_, kOpen, 0);
    bool made = false;
    if (fd < 0 && System::error() == ENOENT && request.make_missing) {
      made = System::make_folder_at(folder_.get(), name_, request.mode) == 0;
      if (!made && System::error() != EEXIST) return System::error();
      fd = System::open_at(folder_.get(), name_, kOpen, 0);
    }
    if (fd < 0) return System::error();
    File next(fd);
    struct stat info {};
    if (System::status_of(fd, info) != 0) return System::error();
    if (S_ISLNK(info.st_mode))
      return is_another_user(info.st_uid, System::user()) || ++links_ > kMaxLinks ? ELOOP : follow(fd);
    if (!S_ISDIR(info.st_mode) && !(request.any_kind && is_at_end())) return ENOTDIR;
    if (made && (info.st_mode & S_IRWXU) != S_IRWXU) open_to_owner(fd, info.st_mode);
    folder_ = std::move(next);
    return 0;
  }

  /// A umask may close a new folder to its owner, too. fchmod does not take an O_PATH descriptor.
  static void open_to_owner(int fd, unsigned mode) noexcept {
    char path[] = "/proc/self/fd/0123456789";
    std::size_t end = sizeof path - 1;
    std::size_t first = end;
    for (int rest = fd; first == end || rest != 0; rest /= 10)
      path[--first] = static_cast<char>('0' + rest % 10);
    constexpr std::size_t kNumber = sizeof "/proc/self/fd/" - 1;
    std::copy(path + first, path + sizeof path, path + kNumber);
    System::change_mode(path, (mode & 07777U) | S_IRWXU);
  }

  int follow(int link) noexcept {
    char target[kMaxLength];
    const long size = System::read_link_at(link, "", target, sizeof target);
    if (size <= 0) return size < 0 ? System::error() : ENOENT;
    const auto length = static_cast<std::size_t>(size);
    if (length + 1 > at_) return ENAMETOOLONG;
    rest_[--at_] = '/';
    at_ -= length;
    copy({target, length}, at_);
    if (target[0] != '/') return 0;
    File root(System::open_at(AT_FDCWD, "/", kOpen | O_DIRECTORY, 0));
    if (root.get() < 0) return System::error();
    folder_ = std::move(root);
    return 0;
  }

  File folder_;
  unsigned links_ = 0;
  std::size_t at_ = kMaxLength;  ///< where what is left of the path begins
  char rest_[kMaxLength];
  char name_[257];  // no file system has longer names than 255
  std::size_t size_ = 0;
};

}  // namespace kshim::report
