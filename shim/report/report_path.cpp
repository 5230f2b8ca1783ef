// SPDX-License-Identifier: Apache-2.0
#include "report/report_path.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guest/clock.h"
#include "guest/own_file.h"
#include "guest/signals.h"
#include "guest/slices.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/report/report_folder.h"
#include "kshim/report/trusted_folder.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

// Of the names for one pattern: a try is a round trip on a network's file system.
constexpr unsigned kMaxNumber = 9999;
constexpr unsigned kInOrder = 64;
constexpr unsigned kMaxTries = 256;

/// Descriptors below this number are left to hosts that expect low ones (shells; daemons that close 0, 1, 2
/// and reopen them). Where there is room for it, the number is one that a host hardly chooses itself.
int move_up(OwnFile low) noexcept {
  constexpr rlim_t kWanted = 1000;
  constexpr rlim_t kSpread = 3000;
  rlimit limit{};
  if (raw::get_limit(RLIMIT_NOFILE, limit) != 0) limit.rlim_cur = 256;
  rlim_t lowest = limit.rlim_cur > kWanted + 24 ? kWanted : limit.rlim_cur / 2;
  if (limit.rlim_cur > kWanted + kSpread + 24) lowest += 1 + now_nanoseconds() / 64 % kSpread;
  const int high = raw::duplicate_above(low.get(), static_cast<int>(lowest));
  return high < 0 && low.get() > STDERR_FILENO ? low.release() : high;
}

}  // namespace

std::string_view reason_of(int error) noexcept {
  switch (error) {
    case EACCES:
      return "permission denied";
    case EPERM:
      return "not permitted";
    case EROFS:
      return "the file system is read-only";
    case ENOSPC:
      return "no space left";
    case EDQUOT:
      return "quota exceeded";
    case ENOTDIR:
      return "part of the path is not a folder";
    case ENOENT:
      return "the folder cannot be made";
    case ELOOP:
      return "a link on the way belongs to another user";
    case ENAMETOOLONG:
      return "the name is too long";
    case EMFILE:
      return "this process has too many open files";
    case ENFILE:
      return "the system has too many open files";
    case EEXIST:
      return "too many reports of that name";
    case EISDIR:
      return "it is a folder";
    case ENOTSUP:
      return "the folder is another user's, or somebody else can write to it";
    case EFBIG:
      return "the process may not write more to a file";
    case EIO:
      return "input/output error";
    case EXDEV:
      return "another file system was mounted there since the program started";
    case EINVAL:
      return "it is a device";
    default:
      return "";
  }
}

namespace {

template <std::size_t kSize>
void append_reason(Text<kSize>& line, int error) noexcept {
  const std::string_view known = reason_of(error);
  if (known.empty())
    line << "error " << static_cast<std::uint64_t>(error);
  else
    line << known;
}

/// /dev/null, /dev/full, and /dev/stderr, which is a link: with a number appended, such a name would be a
/// file in /dev.
bool is_device(std::string_view path) noexcept {
  PathText name;
  name << path;
  struct stat info {};
  const bool device =
      raw::status_of_link(name.c_str(), info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode));
  return device || path.substr(0, path.rfind('/')) == "/dev";
}

PathText absolute(std::string_view path, std::string_view folder) noexcept {
  PathText out;
  if (!path.starts_with('/') && !folder.empty()) out << folder << (folder.ends_with('/') ? "" : "/");
  out << path;
  return out;
}

}  // namespace

PathText expand_pattern(std::string_view pattern, const ProcessNames& names) noexcept {
  PathText out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : 0;
    if (next == 'p') {
      out << names.pid;
    } else if (next == 'r') {
      out << names.rank;
    } else if (next == 'h') {
      for (const char c : names.host) out.put(c == '/' || c <= ' ' ? '_' : c);
    } else {
      out.put(pattern[i]);
    }
    if (next != 0) ++i;
  }
  return out;
}

PathText numbered(std::string_view path, unsigned number) noexcept {
  PathText out;
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.rfind('.');
  const bool has_extension = dot != std::string_view::npos && dot > name;
  const std::size_t stem = has_extension ? dot : path.size();
  out << path.substr(0, stem) << "." << number << part_of(path, stem);
  return out;
}

bool still_open(const ReportFile& file) noexcept { return file.fd >= 0 && file.identity.is(file.fd); }

namespace {

struct GuestCalls {
  using File = OwnFile;
  static int open_at(int folder, const char* name, int flags, unsigned mode) noexcept {
    return raw::open_at(folder, name, flags, mode);
  }
  static int make_folder_at(int folder, const char* name, unsigned mode) noexcept {
    return raw::make_folder_at(folder, name, mode);
  }
  static long read_link_at(int folder, const char* name, char* to, std::size_t size) noexcept {
    return raw::read_link_at(folder, name, to, size);
  }
  static int status_of(int fd, struct stat& out) noexcept { return raw::status_of(fd, out); }
  static int change_mode(const char* path, unsigned mode) noexcept {
    return static_cast<int>(raw::call(SYS_fchmodat, AT_FDCWD, path, mode));
  }
  static int error() noexcept { return raw::t_error; }
  static uid_t user() noexcept { return raw::user(); }
};
using Walk = report::FolderWalk<GuestCalls>;

/// errno, or 0 with the folder open.
int open_folder(std::string_view path, report::FolderRequest request, OwnFile& out) noexcept {
  int fd = -1;
  const int error = Walk::open(path, request, fd);
  out = OwnFile(fd);
  return error;
}

/// Whether the folder can have so many entries: on every file system but ZFS an entry makes its folder 16
/// bytes longer, at least.
bool can_have(const struct stat& folder, std::uint64_t entries) noexcept {
  constexpr std::uint64_t kEntry = 16;
  return static_cast<std::uint64_t>(folder.st_size) / kEntry >= entries;
}

/// Whether a folder has `most` entries; of one that others may write to, the caller's own count.
bool has_entries(int folder, const struct stat& info, std::uint64_t most) noexcept {
  if (!can_have(info, most)) return false;
  const OwnFile listed(raw::open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!listed) return false;
  const uid_t caller = raw::user();
  const bool is_shared = report::others_may_write(info, caller);
  alignas(std::uint64_t) char entries[4096];
  std::uint64_t count = 0;
  for (long size = 0; count < most && (size = raw::list_folder(listed.get(), entries, sizeof entries)) > 0;) {
    constexpr long kLengthAt = 16;  // linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name
    constexpr long kNameAt = 19;
    for (long at = 0; at < size;) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries + at + kLengthAt, sizeof length);
      if (length == 0) break;
      const char* const name = entries + at + kNameAt;
      at += length;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      struct stat entry {};
      if (!is_shared || (raw::status_at(folder, name, entry) == 0 && entry.st_uid == caller)) ++count;
    }
  }
  return count >= most;
}

/// Processes that start at the same time count and create one after the other. A folder that cannot be full
/// is not locked, nor one on a server, which may not answer; what somebody else has locked stops nobody.
class ScopedFolderLock {
 public:
  ScopedFolderLock(int folder, const struct stat& info, std::uint64_t most) noexcept {
    constexpr std::uint64_t kSmall = 1024;
    constexpr int kTries = 50;
    constexpr long kPause = 1'000'000;
    if ((most > kSmall && !can_have(info, most / 2)) || !raw::is_on_local_disk(folder)) return;
    // Through a description of its own: closing it unlocks.
    file_ = OwnFile(raw::open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    for (int tries = 0; file_ && tries < kTries; ++tries) {
      if (raw::call(SYS_flock, file_.get(), LOCK_EX | LOCK_NB) == 0 || raw::t_error != EWOULDBLOCK) return;
      raw::sleep_for(kPause);
    }
  }
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }

 private:
  OwnFile file_;
};

constexpr int kTooManyFiles = -1;  // beside errno

int create_in(int folder, std::string_view path, const Options& options, ReportFile& out) noexcept {
  struct stat within {};
  if (raw::status_of(folder, within) != 0) return raw::t_error;
  const ScopedFolderLock lock(folder, within, options.max_files);
  if (lock && raw::status_of(folder, within) != 0) return raw::t_error;
  if (has_entries(folder, within, options.max_files)) return kTooManyFiles;
  const unsigned mode = options.mode;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  const std::uint64_t start = now_nanoseconds() / 64;
  for (unsigned tries = 0; tries < kMaxTries; ++tries) {
    const auto number = tries < kInOrder
                            ? tries
                            : static_cast<unsigned>(kInOrder + (start + tries) % (kMaxNumber - kInOrder + 1));
    PathText candidate;
    if (number == 0)
      candidate << path;
    else
      candidate = numbered(path, number);
    if (candidate.full()) return ENAMETOOLONG;
    PathText name;
    name << base_name(candidate.view());
    const int fd = raw::open_at(folder, name.c_str(), kFlags, mode);
    if (fd < 0 && raw::t_error == EEXIST) {
      if (is_device(candidate.view())) return EINVAL;
      continue;
    }
    if (fd < 0) return raw::t_error;
    struct stat info {};
    OwnFile made(fd);
    out.identity = made.identity();
    out.fd = move_up(std::move(made));
    if (out.fd < 0 || raw::status_of(out.fd, info) != 0) return raw::t_error;
    // Independent of the umask.
    if ((info.st_mode & 0777U) != mode) raw::change_mode(out.fd, mode);
    out.path = candidate;
    return 0;
  }
  return EEXIST;
}

std::string_view folder_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view(".") : path.substr(0, slash + 1);
}

}  // namespace

int create_report(std::string_view path, const Options& options, ReportFile& out) noexcept {
  OwnFile folder;
  if (const int error = open_folder(folder_of(path), {.make_missing = true}, folder); error != 0)
    return error;
  return create_in(folder.get(), path, options, out);
}

bool write_beside(std::string_view report, const char* name, Bytes content) noexcept {
  OwnFile folder;
  if (open_folder(folder_of(report), {}, folder) != 0) return false;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  const OwnFile file(raw::open_at(folder.get(), name, kFlags, 0600));
  struct stat info {};
  if (!file)
    return raw::t_error == EEXIST && raw::status_at(folder.get(), name, info) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == raw::user();
  while (!content.empty()) {
    const ssize_t written = write_without_signal(file.get(), content.data(), content.size());
    if (written <= 0) break;
    content = content.subspan(static_cast<std::size_t>(written));
  }
  if (!content.empty()) raw::call(SYS_unlinkat, folder.get(), name, 0);
  return content.empty();
}

namespace {

/// In a folder that belongs to the caller and is made if it is missing. No other user can put files there.
int create_in_own_folder(const PathText& own, std::string_view name, const Options& options,
                         ReportFile& out) noexcept {
  OwnFile folder;
  struct stat info {};
  PathText path;
  path << own.view() << "/" << name;
  PathText itself = own;
  if (raw::status_of_link(itself.c_str(), info) == 0 && S_ISLNK(info.st_mode)) return ELOOP;
  if (const int error = open_folder(own.view(), {.make_missing = true, .mode = 0700}, folder); error != 0)
    return error;
  if (raw::status_of(folder.get(), info) != 0) return raw::t_error;
  if (!report::is_own_folder(info, raw::user())) return EPERM;
  return create_in(folder.get(), path.view(), options, out);
}

/// kshim-report-UID in a folder. If another user created that name first, kshim-report-UID.N with a random N,
/// which that user cannot know.
int create_in_private_folder(std::string_view folder, std::string_view name, const Options& options,
                             ReportFile& out) noexcept {
  constexpr unsigned kNames = 10;
  int error = 0;
  for (unsigned number = 0; number <= kNames; ++number) {
    PathText own;
    own << folder << (folder.ends_with('/') ? "" : "/") << "kshim-report-"
        << static_cast<std::uint64_t>(raw::user());
    if (number != 0) own << "." << (number < kNames ? number : now_nanoseconds() / 64);
    error = create_in_own_folder(own, name, options, out);
    if (error != EPERM && error != ELOOP && error != ENOTDIR) break;
  }
  return error;
}

/// kshim-report in the working directory, as report_folder.h has it. ENOTSUP: not here.
int create_by_default(const PathText& wanted, std::string_view name, const Options& options,
                      ReportFile& out) noexcept {
  OwnFile working;
  struct stat info {};
  // A file system of this process's own (FUSE) would wait for itself.
  PathText start;
  start << options.start_folder;
  if (options.start_device != 0 && raw::status_of_path(start.c_str(), info, raw::kAskNoServer) == 0 &&
      info.st_dev != options.start_device)
    return EXDEV;
  if (const int error = open_folder(options.start_folder, {}, working); error != 0) return error;
  if (raw::status_of(working.get(), info) != 0) return raw::t_error;
  switch (report::default_folder(info, raw::user())) {
    case report::DefaultFolder::here:
      break;
    case report::DefaultFolder::own_here:
      return create_in_private_folder(options.start_folder, name, options, out);
    case report::DefaultFolder::temporary:
      return ENOTSUP;
  }
  OwnFile folder;
  if (const int error = open_folder(folder_of(wanted.view()), {.make_missing = true}, folder); error != 0)
    return error;
  if (raw::status_of(folder.get(), info) != 0) return raw::t_error;
  if (!report::is_own_folder(info, raw::user())) return ENOTSUP;
  return create_in(folder.get(), wanted.view(), options, out);
}

}  // namespace

bool open_report(const Options& options, const EnvironmentCopy& environment, const ProcessNames& names,
                 ReportFile& out) noexcept {
  const PathText wanted = absolute(expand_pattern(options.report, names).view(), options.start_folder);
  const std::string_view pattern = options.report_given ? "%h.%p.jsonl" : options.report;
  const PathText expanded = expand_pattern(pattern, names);
  const std::string_view name = base_name(expanded.view());
  const int error = options.report_given ? create_report(wanted.view(), options, out)
                                         : create_by_default(wanted, name, options, out);
  if (error == 0) return true;
  if (wanted.view() == "/dev/null") return false;  // the user wants no report

  const std::string_view temporary = options.own_settings ? "/tmp" : environment.temporary_folder();
  const bool open = error != kTooManyFiles && create_in_private_folder(temporary, name, options, out) == 0;
  Text<2048> line;
  if (error == kTooManyFiles) {
    line << folder_of(wanted.view()).substr(0, 1500) << " has " << options.max_files
         << " files (KSHIM_MAX_FILES)";
  } else {
    line << "cannot write the report " << wanted.view().substr(0, 1500) << ": ";
    append_reason(line, error);
  }
  if (open)
    line << "; writing to " << out.path.view();
  else
    line << "; nothing is recorded";
  log_line(open ? LogLevel::warn : LogLevel::error, line.view());
  return open;
}

bool reopen_report(ReportFile& file) noexcept {
  OwnFile again(raw::open_file(file.path.c_str(),
                               O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (!again || again.identity() != file.identity) return false;
  file.fd = move_up(std::move(again));
  return file.fd >= 0;
}

std::string_view relative_to(std::string_view path, std::string_view folder) noexcept {
  if (folder.size() < 2 || !path.starts_with(folder) || path.size() <= folder.size() ||
      path[folder.size()] != '/')
    return path;
  return part_of(path, folder.size() + 1);
}

}  // namespace kshim::shim
