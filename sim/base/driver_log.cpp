// SPDX-License-Identifier: Apache-2.0
// cuLogs*.
#include "base/driver_log.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>

#include "entry/entry.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kMaxLines = 100;
struct Log {
  std::mutex lock;
  std::deque<std::string> lines;
  CUlogIterator next = 0;  ///< the number of the line that comes
};
Log& log() {
  static Log* const the = new Log;  // lives as long as the process
  return *the;
}

}  // namespace

// A line as the programming guide shows one: [12:46:23.854][137216133754880][CUDA][E] text.
void log_driver_error(std::string_view call, CUresult result, std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char stamp[64];
  std::snprintf(stamp, sizeof stamp, "[%02d:%02d:%02d.%03d][%lu][CUDA][E] ", local.tm_hour, local.tm_min,
                local.tm_sec, static_cast<int>(now.tv_nsec / 1000000),
                static_cast<unsigned long>(pthread_self()));
  std::string line = stamp;
  line.append(call).append(" answers ").append(std::to_string(static_cast<int>(result)));
  if (!message.empty()) line.append(": ").append(message);
  line += '\n';
  Log& to = log();
  const std::lock_guard guard(to.lock);
  to.lines.push_back(std::move(line));
  ++to.next;
  if (to.lines.size() > kMaxLines) to.lines.pop_front();
}

CUresult entry::cuLogsCurrent(CUlogIterator* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(log().lock);
  *out = log().next;
  return CUDA_SUCCESS;
}

CUresult entry::cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  if (buffer == nullptr || size == nullptr || *size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Log& from = log();
  const std::lock_guard guard(from.lock);
  const CUlogIterator first = from.next - static_cast<CUlogIterator>(from.lines.size());
  const CUlogIterator begin = iterator == nullptr ? first : std::clamp(*iterator, first, from.next);
  std::string text;
  // The newest that have room.
  for (CUlogIterator at = from.next; at > begin; --at) {
    const std::string& line = from.lines[at - 1 - first];
    if (text.size() + line.size() >= *size) break;
    text.insert(0, line);
  }
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  *size = text.size() + 1;
  if (iterator != nullptr) *iterator = from.next;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
