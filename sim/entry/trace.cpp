// SPDX-License-Identifier: Apache-2.0
#include "entry/trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "kshim/base/cuda_error.h"

namespace kshim::sim {
namespace {

using Clock = std::chrono::steady_clock;

struct TraceFile {
  int descriptor = -1;
  Clock::time_point start = Clock::now();
};

TraceFile open_trace() noexcept {
  TraceFile file;
  const char* path = std::getenv("KSHIM_SIM_TRACE");
  if (path == nullptr || *path == '\0') return file;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  file.descriptor = ::open(path, kFlags | O_NOFOLLOW, 0600);
  struct stat link {};
  // /dev/stderr is a link of root's.
  if (file.descriptor < 0 && errno == ELOOP && ::lstat(path, &link) == 0 &&
      (link.st_uid == 0 || link.st_uid == ::geteuid()))
    file.descriptor = ::open(path, kFlags, 0600);
  if (file.descriptor < 0) {
    std::string line = "KSHIM_SIM_TRACE=";
    line.append(path).append(": ").append(std::strerror(errno)).append("; calls are not traced");
    log_line(LogLevel::error, line);
  }
  return file;
}

const TraceFile& trace_file() noexcept {
  static const TraceFile file = open_trace();
  return file;
}

}  // namespace

bool trace_enabled() noexcept { return trace_file().descriptor >= 0; }

TraceLine::TraceLine(std::string_view function) noexcept {
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - trace_file().start).count();
  unsigned_number(static_cast<std::uint64_t>(elapsed / 1'000'000'000));
  char fraction[10];
  auto rest = static_cast<std::uint32_t>(elapsed % 1'000'000'000);
  fraction[0] = '.';
  for (int i = 9; i > 0; --i, rest /= 10) fraction[i] = static_cast<char>('0' + rest % 10);
  text({fraction, sizeof fraction});
  text(" ");
  number(::syscall(SYS_gettid));
  text(" ");
  text(function);
  text("(");
}

void TraceLine::text(std::string_view value) noexcept {
  constexpr std::size_t limit = sizeof buffer_ - 1;  // room for the newline
  const std::size_t size = value.size() < limit - size_ ? value.size() : limit - size_;
  std::memcpy(buffer_ + size_, value.data(), size);
  size_ += size;
}

void TraceLine::number(std::int64_t value) noexcept {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text({digits, static_cast<std::size_t>(end - digits)});
}

void TraceLine::unsigned_number(std::uint64_t value) noexcept {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text({digits, static_cast<std::size_t>(end - digits)});
}

void TraceLine::real(double value) noexcept {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text({digits, static_cast<std::size_t>(end - digits)});
}

void TraceLine::pointer(const void* value) noexcept {
  char digits[24] = {'0', 'x'};
  const auto end =
      std::to_chars(digits + 2, digits + sizeof digits, reinterpret_cast<std::uintptr_t>(value), 16).ptr;
  text({digits, static_cast<std::size_t>(end - digits)});
}

void TraceLine::quoted(const char* value) noexcept {
  if (value == nullptr) return text("null");
  text("\"");
  const std::size_t size =
      ::strnlen(value, 300);  // names are mangled and long; images are not C strings to us
  for (std::size_t i = 0; i < size; ++i) text(value[i] >= ' ' ? std::string_view(value + i, 1) : " ");
  text(size == 300 ? "...\"" : "\"");
}

void TraceLine::result(int code) noexcept {
  text(") = ");
  number(code);
  const CudaError* error = find_cuda_error(code);
  if (error != nullptr && error->driver_name != nullptr) {
    text(" ");
    text(error->driver_name);
  }
}

void TraceLine::write() noexcept {
  if (outputs_ != 0) text("]");
  buffer_[size_++] = '\n';
  [[maybe_unused]] const auto written = ::write(trace_file().descriptor, buffer_, size_);
}

}  // namespace kshim::sim
