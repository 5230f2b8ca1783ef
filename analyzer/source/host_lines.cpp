// SPDX-License-Identifier: Apache-2.0
#include "analyzer/source/host_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>

#include "analyzer/source/dwarf_reader.h"

// Sanitizers take more addresses than any limit worth having.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KSHIM_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KSHIM_SANITIZED true
#endif
#endif
#ifndef KSHIM_SANITIZED
#define KSHIM_SANITIZED false
#endif

namespace kshim::source {
namespace {

constexpr bool kSanitized = KSHIM_SANITIZED;
// Two seconds are enough for 1.5 GB of DWARF.
constexpr rlim_t kMostSeconds = 10;
constexpr std::chrono::seconds kPatience{20};
constexpr rlim_t kMostMemory = rlim_t{16} << 30;  ///< of addresses: the file is mapped

constexpr std::size_t kLargestAnswer = std::size_t{1} << 20;
constexpr std::size_t kMostAddresses = 64;
constexpr std::size_t kLongestBuildId = 128;

// What comes back: for each frame "INDEX LINE FILE FUNCTION", each part ended by a newline.
std::string clean(std::string text) {
  constexpr std::size_t kLongest = 4096;
  if (text.size() > kLongest) text.resize(kLongest);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string written(const std::vector<SourceFrames>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const SourceFrame& frame : all[i])
      out += std::to_string(i) + '\n' + std::to_string(frame.at.line) + '\n' + clean(frame.at.file) + '\n' +
             clean(frame.function) + '\n';
  }
  return out;
}

bool take_line(std::string_view& text, std::string_view& line) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

template <class T>
bool number(std::string_view text, T& out) {
  const auto got = std::from_chars(text.data(), text.data() + text.size(), out);
  return got.ec == std::errc() && got.ptr == text.data() + text.size();
}

void parse(std::string_view text, std::vector<SourceFrames>& out) {
  std::string_view index_text;
  std::string_view line_text;
  std::string_view file;
  std::string_view function;
  while (take_line(text, index_text) && take_line(text, line_text) && take_line(text, file) &&
         take_line(text, function)) {
    std::size_t index = 0;
    SourceFrame frame;
    if (!number(index_text, index) || index >= out.size() || !number(line_text, frame.at.line)) return;
    frame.at.file = file;
    frame.function = function;
    out[index].push_back(std::move(frame));
  }
}

void limit(int resource, rlim_t most) {
  const rlimit value{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// An exception (no memory) ends it as a signal does.
[[noreturn]] void child(int answer, const HostFile& file,
                        const std::vector<std::uint64_t>& addresses) noexcept {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kMostSeconds);
  if (!kSanitized) limit(RLIMIT_AS, kMostMemory);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGINT, SIGTERM})
    ::signal(number, SIG_DFL);
  // What the library, or an allocator that is at its end, has to say is not for the user.
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDERR_FILENO);
  const std::string text = written(read_dwarf(file, addresses));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::write(answer, text.data() + done, text.size() - done);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  ::_exit(0);
}

/// What comes through the pipe before it ends; empty where it does not end in time.
std::string receive(int answer) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string out;
  char part[4096];
  while (out.size() < kLargestAnswer) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{answer, POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t got = ::read(answer, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(part, static_cast<std::size_t>(got));
  }
  return out;
}

}  // namespace

// Debian, Fedora and gdb keep the debug files of stripped ones under the first two digits of their build ids.
std::filesystem::path debug_file(const HostFile& file) {
  const bool hex = file.build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex || file.build_id.size() < 3 || file.build_id.size() > kLongestBuildId) return {};
  return file.root / "usr/lib/debug/.build-id" / file.build_id.substr(0, 2) /
         (file.build_id.substr(2) + ".debug");
}

bool has_debug_file(const HostFile& file) {
  std::error_code error;
  const std::filesystem::path path = debug_file(file);
  return !path.empty() && std::filesystem::is_regular_file(path, error);
}

bool reads_host_lines() { return KSHIM_HAS_DWARF != 0; }

std::vector<SourceFrames> host_lines(const HostFile& file, const std::vector<std::uint64_t>& addresses) {
  std::vector<SourceFrames> out(addresses.size());
  int ends[2];
  if (!reads_host_lines() || addresses.empty() || addresses.size() > kMostAddresses ||
      ::pipe2(ends, O_CLOEXEC) != 0)
    return out;
  const pid_t reader = ::fork();
  if (reader == 0) {
    ::close(ends[0]);
    child(ends[1], file, addresses);
  }
  ::close(ends[1]);
  if (reader > 0) {
    const std::string text = receive(ends[0]);
    ::kill(reader, SIGKILL);
    int status = 0;
    while (::waitpid(reader, &status, 0) < 0 && errno == EINTR) {
    }
    parse(text, out);
  }
  ::close(ends[0]);
  return out;
}

}  // namespace kshim::source
