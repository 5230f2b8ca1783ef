// SPDX-License-Identifier: Apache-2.0
#include "report/report_path.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guest/slices.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

constexpr unsigned kMaxNumber = 9999;

/// A number out of the way of hosts that count on getting low ones (shells, daemons that close 0, 1, 2 and
/// reopen them).
int move_up(int fd) noexcept {
  constexpr rlim_t kWanted = 1000;
  rlimit limit{};
  if (raw::get_limit(RLIMIT_NOFILE, limit) != 0) limit.rlim_cur = 256;
  const rlim_t lowest = limit.rlim_cur > kWanted + 24 ? kWanted : limit.rlim_cur / 2;
  const int high = raw::duplicate_above(fd, static_cast<int>(lowest));
  if (high < 0 && fd > STDERR_FILENO) return fd;
  raw::close_file(fd);
  return high;
}

void make_folders(std::string_view path) noexcept {
  PathText folder;
  folder << path;
  for (std::size_t at = path.find('/', 1); at != std::string_view::npos; at = path.find('/', at + 1)) {
    PathText part;
    part << path.substr(0, at);
    // Of a host without a umask (daemons) too, nobody else may remove what is in it. An error shows when the
    // file is opened.
    raw::make_folder(part.c_str(), 0755);
  }
}

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
      return "symbolic links are not followed";
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
    case EINVAL:
      return "it is a device";
    default:
      return "";
  }
}

template <std::size_t kSize>
void append_reason(Text<kSize>& line, int error) noexcept {
  const std::string_view known = reason_of(error);
  if (known.empty())
    line << "error " << static_cast<std::uint64_t>(error);
  else
    line << known;
}

/// A folder, not a link to one, that belongs to us and that nobody else can write to.
bool is_private_folder(PathText& path) noexcept {
  const int fd = raw::open_file(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info {};
  const bool ours = raw::status_of(fd, info) == 0 && info.st_uid == raw::user() && (info.st_mode & 022U) == 0;
  raw::close_file(fd);
  return ours;
}

/// As Linux itself does it where fs.protected_symlinks is on: in a folder that everybody may write to, a link
/// that neither we nor the folder's owner made is not followed.
bool is_a_trap(const char* folder, const char* path) noexcept {
  struct stat link {};
  struct stat where {};
  if (raw::status_of_link(path, link) != 0 || !S_ISLNK(link.st_mode) || link.st_uid == raw::user())
    return false;
  if (raw::status_of_path(folder, where) != 0) return true;
  return (where.st_mode & S_ISVTX) != 0 && (where.st_mode & S_IWOTH) != 0 && where.st_uid != link.st_uid;
}

bool leads_through_a_trap(std::string_view path) noexcept {
  PathText before;
  before << (path.starts_with('/') ? "/" : ".");
  for (std::size_t at = path.find('/', 1); at != std::string_view::npos; at = path.find('/', at + 1)) {
    PathText part;
    part << path.substr(0, at);
    if (is_a_trap(before.c_str(), part.c_str())) return true;
    before = part;
  }
  return false;
}

/// /dev/null, /dev/full, and /dev/stderr, which is a link: a number behind such a name would be a file
/// among the machine's devices.
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

namespace {

/// The signal number that F_SETSIG keeps with an open file stays with that open file alone, whoever has its
/// descriptor number later, and means nothing on a file without O_ASYNC. libc keeps 33 for itself and refuses
/// it everywhere, so no program sets it.
constexpr int kMark = 33;
void mark(ReportFile& file) noexcept {
  file.marked = file.fd >= 0 && raw::call(SYS_fcntl, file.fd, F_SETSIG, kMark) == 0 &&
                raw::call(SYS_fcntl, file.fd, F_GETSIG) == kMark;
}

}  // namespace

bool still_open(const ReportFile& file) noexcept {
  if (file.fd < 0) return false;
  // A third of fstat's price.
  if (file.marked && raw::call(SYS_fcntl, file.fd, F_GETSIG) == kMark) return true;
  struct stat info {};
  return raw::status_of(file.fd, info) == 0 && info.st_dev == file.device && info.st_ino == file.inode;
}

int create_report(std::string_view path, ReportFile& out) noexcept {
  if (leads_through_a_trap(path)) return ELOOP;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  bool folders_made = false;
  for (unsigned number = 0; number <= kMaxNumber;) {
    PathText candidate;
    if (number == 0)
      candidate << path;
    else
      candidate = numbered(path, number);
    if (candidate.full()) return ENAMETOOLONG;
    const int fd = raw::open_file(candidate.c_str(), kFlags, 0600);
    if (fd >= 0) {
      struct stat info {};
      out.fd = move_up(fd);
      if (out.fd < 0 || raw::status_of(out.fd, info) != 0) return errno;
      out.device = info.st_dev;
      out.inode = info.st_ino;
      out.path = candidate;
      mark(out);
      return 0;
    }
    if (errno == ENOENT && !folders_made) {
      make_folders(candidate.view());
      folders_made = true;
    } else if (errno == EEXIST) {
      if (is_device(candidate.view())) return EINVAL;
      ++number;
    } else {
      return errno;
    }
  }
  return EEXIST;
}

bool open_report(const Options& options, const EnvironmentCopy& environment, const ProcessNames& names,
                 ReportFile& out) noexcept {
  const PathText wanted = absolute(expand_pattern(options.report, names).view(), options.start_folder);
  const int error = create_report(wanted.view(), out);
  if (error == 0) return true;
  if (wanted.view() == "/dev/null") return false;  // that is how somebody asks for none

  // In TMPDIR, which others may write to, only in a folder of our own: nobody else can have laid links there.
  const std::string_view pattern = options.report_given ? "%h.%p.jsonl" : options.report;
  const PathText name = expand_pattern(pattern, names);
  PathText own;
  own << environment.temporary_folder() << "/kshim-report-" << static_cast<std::uint64_t>(raw::user());
  make_folders(own.view());
  raw::make_folder(own.c_str(), 0700);
  bool open = false;
  if (is_private_folder(own)) {
    own << "/" << base_name(name.view());
    open = create_report(own.view(), out) == 0;
  }
  Text<2048> line;
  line << "cannot write the report " << wanted.view().substr(0, 1500) << ": ";
  append_reason(line, error);
  if (open)
    line << "; writing to " << out.path.view();
  else
    line << "; nothing is recorded";
  // Nobody asked for the working directory in particular.
  const LogLevel elsewhere_level = options.report_given ? LogLevel::warn : LogLevel::info;
  say(open ? elsewhere_level : LogLevel::error, line.view());
  return open;
}

bool reopen_report(ReportFile& file) noexcept {
  const int fd =
      raw::open_file(file.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info {};
  if (raw::status_of(fd, info) != 0 || info.st_dev != file.device || info.st_ino != file.inode) {
    raw::close_file(fd);
    return false;
  }
  file.fd = move_up(fd);
  mark(file);
  return file.fd >= 0;
}

std::string_view relative_to(std::string_view path, std::string_view folder) noexcept {
  if (folder.size() < 2 || !path.starts_with(folder) || path.size() <= folder.size() ||
      path[folder.size()] != '/')
    return path;
  return part_of(path, folder.size() + 1);
}

}  // namespace kshim::shim
