// SPDX-License-Identifier: Apache-2.0
// cuLogs* and CUDA_LOG_FILE.
#include "base/driver_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/handles.h"
#include "base/settings.h"
#include "entry/entry.h"
#include "kshim/base/cuda_error.h"

namespace kshim::sim {
namespace {

constexpr image::Version kFirstLog{12, 9};
/// From here on a message has no entry point, and a last line says what is returned.
constexpr image::Version kFirstReturning{13, 4};
constexpr std::size_t kMaxLines = 100;
constexpr std::size_t kMaxBytes = 25600;

struct Callback : Handled<Kind::log_callback> {
  Callback(CUlogsCallback call, void* with) : function(call), data(with) { publish(this); }
  ~Callback() { retire(); }
  CUlogsCallback function;
  void* data;
};

struct Log {
  const pid_t process = ::getpid();  ///< in a child of fork another thread may have left the lock taken
  std::mutex lock;
  std::deque<std::string> lines;
  std::size_t bytes = 0;
  CUlogIterator next = 0;  ///< the number of the line that comes
  std::vector<Callback*> callbacks;
  int file = -1;  ///< CUDA_LOG_FILE
};

int open_file() noexcept {
  const char* name = std::getenv("CUDA_LOG_FILE");
  if (name == nullptr || *name == '\0') return -1;
  if (std::string_view(name) == "stdout") return STDOUT_FILENO;
  if (std::string_view(name) == "stderr") return STDERR_FILENO;
  return ::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

Log& log() {
  static Log* const the = [] {
    auto* made = new Log;  // lives as long as the process
    made->file = open_file();
    return made;
  }();
  return *the;
}

/// What was explained of the call that runs on this thread; null: nothing. A pointer, since a destructor
/// would need a newer glibc.
thread_local std::vector<std::string>* t_reasons = nullptr;

/// A handler that jumps out of a failing call (siglongjmp) must not leave the log's locks behind.
class ScopedBlockSignals {
 public:
  ScopedBlockSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~ScopedBlockSignals() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  ScopedBlockSignals(const ScopedBlockSignals&) = delete;
  ScopedBlockSignals& operator=(const ScopedBlockSignals&) = delete;

 private:
  sigset_t old_;
};

/// [22:21:32.099][25642][CUDA][E]
std::string head() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char text[64];
  std::snprintf(text, sizeof text, "[%02d:%02d:%02d.%03d][%ld][CUDA][E]", local.tm_hour, local.tm_min,
                local.tm_sec, static_cast<int>(now.tv_nsec / 1000000), ::syscall(SYS_gettid));
  return text;
}

void keep(Log& to, std::string line) {
  line += '\n';
  if (to.file >= 0) [[maybe_unused]]
    const auto written = ::write(to.file, line.data(), line.size());
  to.bytes += line.size();
  to.lines.push_back(std::move(line));
  ++to.next;
  while (to.lines.size() > kMaxLines || to.bytes > kMaxBytes) {
    to.bytes -= to.lines.front().size();
    to.lines.pop_front();
  }
}

/// The newest lines from `from` on that have room, and where the next begins.
std::string newest(Log& of, CUlogIterator* from, std::size_t room, bool& cut) {
  const CUlogIterator first = of.next - static_cast<CUlogIterator>(of.lines.size());
  const CUlogIterator begin = from == nullptr ? first : std::clamp(*from, first, of.next);
  CUlogIterator at = of.next;
  std::size_t bytes = 0;
  while (at > begin && bytes + of.lines[at - 1 - first].size() <= room)
    bytes += of.lines[--at - first].size();
  cut = at > begin;
  std::string text;
  for (CUlogIterator each = at; each < of.next; ++each) text += of.lines[each - first];
  return text;
}

}  // namespace

CUresult explain(CUresult result, std::string message) {
  if (t_reasons == nullptr) t_reasons = new std::vector<std::string>;
  t_reasons->push_back(std::move(message));
  return result;
}

CUresult explain_image(CUresult result, int isa, const std::string& message) {
  if (!message.empty()) return explain(result, message);
  if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) return result;
  return explain(result, "No device code available for GPU ISA " + std::to_string(isa));
}

void log_failure(const char* call, CUresult result) noexcept {
  const ScopedBlockSignals blocked;
  std::vector<std::string> messages;
  if (t_reasons != nullptr) messages.swap(*t_reasons);
  delete t_reasons;
  t_reasons = nullptr;
  if (settings().driver < kFirstLog) return;
  // A question that is answered with "not yet", and look-ups that the runtime makes at each start, are none.
  const std::string_view name = call;
  if (result == CUDA_ERROR_NOT_READY || name.substr(0, 16) == "cuGetProcAddress" ||
      name == "cuGetExportTable")
    return;
  const bool returning = !(settings().driver < kFirstReturning);
  if (result == CUDA_ERROR_INVALID_CONTEXT && messages.empty())
    messages.emplace_back("No CUDA context is current to the calling thread");
  const std::string begin = returning ? head() + " " : head() + "[" + call + "] ";
  if (returning) {
    const CudaError* known = find_cuda_error(static_cast<int>(result));
    messages.push_back("Returning " + std::to_string(static_cast<int>(result)) + " (" +
                       (known != nullptr && known->driver_name != nullptr ? std::string(known->driver_name)
                                                                          : std::string("?")) +
                       ") from " + call);
  }
  Log& to = log();
  if (to.process != ::getpid()) return;
  std::vector<Callback*> callbacks;
  {
    const std::lock_guard guard(to.lock);
    for (const std::string& message : messages) keep(to, begin + message);
    callbacks = to.callbacks;
  }
  // Without the lock: a callback may ask for the log.
  for (const std::string& message : messages) {
    std::string line = begin + message;
    for (Callback* each : callbacks) each->function(each->data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
  }
}

CUresult entry::cuLogsCurrent(CUlogIterator* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(log().lock);
  *out = log().next;
  return CUDA_SUCCESS;
}

CUresult entry::cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  if (buffer == nullptr) return explain(CUDA_ERROR_INVALID_VALUE, "buffer cannot be NULL");
  if (size == nullptr || *size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Log& from = log();
  const std::lock_guard guard(from.lock);
  bool cut = false;
  constexpr std::string_view kCut = "Older messages do not fit into the buffer.\n";
  std::string text = newest(from, iterator, *size - 1, cut);
  if (cut && text.empty()) {
    *size = 0;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (cut && *size > kCut.size()) {
    const std::string shorter = newest(from, iterator, *size - 1 - kCut.size(), cut);
    if (!shorter.empty()) text = std::string(kCut) + shorter;
  }
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  *size = text.size();
  if (iterator != nullptr) *iterator = from.next;
  return CUDA_SUCCESS;
}

CUresult entry::cuLogsDumpToFile(CUlogIterator* iterator, const char* path, unsigned int flags) {
  if (path == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Log& from = log();
  const std::lock_guard guard(from.lock);
  bool cut = false;
  const std::string text = newest(from, iterator, kMaxBytes, cut);
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (iterator != nullptr) *iterator = from.next;
  return whole ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult entry::cuLogsRegisterCallback(CUlogsCallback function, void* data, CUlogsCallbackHandle* out) {
  if (function == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* made = new Callback(function, data);
  const std::lock_guard guard(log().lock);
  log().callbacks.push_back(made);
  *out = made->handle<CUlogsCallbackHandle>();
  return CUDA_SUCCESS;
}

// The object stays: another thread may be about to call it.
CUresult entry::cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  const std::lock_guard guard(log().lock);
  auto* registered = object_of<Callback>(handle);
  if (registered == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::erase(log().callbacks, registered);
  registered->retire();
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
