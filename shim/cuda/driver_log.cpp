// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver_log.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "cuda/real_functions.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/syscalls.h"

namespace kshim::shim {

/// A thread holds one from its first line to the record of its failure. A thread that fails where nothing is
/// recorded keeps its buffer until another one needs it.
struct Buffer {
  std::atomic<std::uintptr_t> owner;  ///< address of the thread's t_buffer; with kBusy, it is being used
  std::size_t size;
  char text[4096 - 16];
  std::string_view lines() const noexcept { return {text, size}; }
};

namespace {

constexpr std::size_t kBuffers = 256;
constexpr std::uintptr_t kBusy = 1;

constinit thread_local Buffer* t_buffer = nullptr;
std::atomic<Buffer*> g_buffers{nullptr};
std::atomic<std::uint32_t> g_next{0};
std::atomic<std::uint64_t> g_listening{0};  ///< the mapping of the driver that has the callback
std::atomic<void*> g_handle{nullptr};

std::uintptr_t this_thread() noexcept { return reinterpret_cast<std::uintptr_t>(&t_buffer); }

bool take(Buffer& buffer, std::uintptr_t from) noexcept {
  return buffer.owner.compare_exchange_strong(from, this_thread() | kBusy, std::memory_order_acquire);
}
void give_back(Buffer& buffer, bool keep) noexcept {
  if (!keep) t_buffer = nullptr;
  buffer.owner.store(keep ? this_thread() : 0, std::memory_order_release);
}

/// This thread's buffer; with `make`, also a free one or another thread's. nullptr in a handler that has
/// interrupted the use of it.
Buffer* take_buffer(bool make) noexcept {
  if (t_buffer != nullptr && take(*t_buffer, this_thread())) return t_buffer;
  Buffer* const all = g_buffers.load(std::memory_order_acquire);
  if (all == nullptr || !make ||
      (t_buffer != nullptr && t_buffer->owner.load(std::memory_order_relaxed) == (this_thread() | kBusy)))
    return nullptr;
  for (const bool steal : {false, true})
    for (std::size_t i = 0; i < kBuffers; ++i) {
      Buffer& buffer = all[steal ? g_next.fetch_add(1, std::memory_order_relaxed) % kBuffers : i];
      const std::uintptr_t owner = steal ? buffer.owner.load(std::memory_order_relaxed) : 0;
      if ((owner & kBusy) != 0 || !take(buffer, owner)) continue;
      buffer.size = 0;
      return t_buffer = &buffer;
    }
  return nullptr;
}

void on_message(void* /*data*/, abi::Enum /*level*/, char* message, std::size_t length) noexcept {
  // What the shim itself asks is no failure of the program.
  if (message != nullptr && !t_asking && g_listening.load(std::memory_order_relaxed) != 0)
    keep_line({message, length});
}

std::string_view until(std::string_view text, std::string_view end) noexcept {
  return text.substr(0, text.find(end));
}

/// "Returning 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) from cuLibraryGetKernel", from the number on; else empty.
std::string_view returned_in(std::string_view line) noexcept {
  constexpr std::string_view kReturning = "] Returning ";
  const std::size_t at = line.find(kReturning);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + kReturning.size());
}

/// The function that a line names: of the one that says what it returned, else, before CUDA 13.4, the fifth
/// field of [time][thread][source][severity][function].
std::string_view function_in(std::string_view line) noexcept {
  constexpr std::string_view kFrom = " from ";
  if (const std::string_view returned = returned_in(line); !returned.empty()) {
    const std::size_t at = returned.find(kFrom);
    return at == std::string_view::npos ? std::string_view() : returned.substr(at + kFrom.size());
  }
  for (int field = 0; field < 4; ++field) {
    const std::size_t end = line.find("][");
    if (end == std::string_view::npos) return {};
    line.remove_prefix(end + 2);
  }
  return until(line, "]");
}

/// The lines of one call, the last of `lines`.
std::string_view last_call_in(std::string_view lines) noexcept {
  std::size_t begin = lines.size();
  std::string_view function;
  bool returned = false;
  while (begin != 0) {
    const std::size_t before = lines.rfind('\n', begin - 2);
    const std::size_t at = begin < 2 || before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = lines.substr(at, begin - 1 - at);
    const bool first = begin == lines.size();
    const bool other = !returned_in(line).empty() || (!returned && function_in(line) != function);
    if (!first && other) break;
    if (first) {
      function = function_in(line);
      returned = !returned_in(line).empty();
    }
    begin = at;
  }
  return lines.substr(begin);
}

std::string_view last_line(std::string_view lines) noexcept {
  lines.remove_suffix(1);
  const std::size_t at = lines.rfind('\n');
  return at == std::string_view::npos ? lines : lines.substr(at + 1);
}

/// cuCtxSynchronize_v2 and cuLaunchKernel_ptsz are cuCtxSynchronize and cuLaunchKernel.
bool is_same_function(std::string_view one, std::string_view other) noexcept {
  return until(one, "_") == until(other, "_");
}

}  // namespace

// The driver may hold locks here, and a handler may be running: this copies bytes and does nothing else.
bool keep_line(std::string_view line) noexcept {
  Buffer* const buffer = take_buffer(true);
  if (buffer == nullptr) return false;
  while (!line.empty() && (line.back() == '\n' || line.back() == '\0')) line.remove_suffix(1);
  line = line.substr(0, sizeof buffer->text - 1);
  while (buffer->size + line.size() + 1 > sizeof buffer->text) {  // the oldest lines go
    const std::size_t end = buffer->lines().find('\n') + 1;
    std::memmove(buffer->text, buffer->text + end, buffer->size - end);
    buffer->size -= end;
  }
  line.copy(buffer->text + buffer->size, line.size());
  buffer->size += line.size();
  buffer->text[buffer->size++] = '\n';
  give_back(*buffer, true);
  return !function_in(line).empty();
}

std::string_view message_of(std::string_view line) noexcept {
  for (int field = 0; field < 2; ++field)
    if (const std::size_t end = line.find("]["); end != std::string_view::npos) line.remove_prefix(end + 1);
  return line;
}

bool prepare_lines() noexcept {
  if (g_buffers.load() != nullptr) return true;
  void* const memory = raw::map_memory(kBuffers * sizeof(Buffer));
  if (memory == nullptr) return false;
  Buffer* none = nullptr;
  if (!g_buffers.compare_exchange_strong(none, static_cast<Buffer*>(memory)))
    raw::unmap_memory(memory, kBuffers * sizeof(Buffer));
  return true;
}

void listen_to_driver() noexcept {
  using Register = abi::Result (*)(LogCallback, void*, void** handle);
  if (!options().enabled || !options().driver_log) return;
  const std::uint64_t driver = current_driver();
  if (g_listening.load() == driver) return;
  const ScopedQuestion question;
  if (!question) return;
  const auto call = reinterpret_cast<Register>(driver_function("cuLogsRegisterCallback"));
  if (call == nullptr || !prepare_lines()) return;
  std::uint64_t before = g_listening.load();
  if (before == driver || !g_listening.compare_exchange_strong(before, driver)) return;
  void* handle = nullptr;
  if (call(on_message, nullptr, &handle) == 0) g_handle.store(handle);
}

void stop_listening(bool in_handler) noexcept {
  using Unregister = abi::Result (*)(void* handle);
  const std::uint64_t driver = g_listening.exchange(0);
  void* const handle = g_handle.exchange(nullptr);
  if (driver == 0 || handle == nullptr || in_handler || current_driver() != driver) return;
  const ScopedQuestion question;
  if (!question) return;
  const auto call = reinterpret_cast<Unregister>(driver_function("cuLogsUnregisterCallback"));
  if (call != nullptr) call(handle);
}

DriverLines::DriverLines() noexcept : buffer_(take_buffer(false)) {}

DriverLines::~DriverLines() {
  if (buffer_ != nullptr) give_back(*buffer_, !taken_);
}

std::string_view DriverLines::of(std::string_view function) noexcept {
  if (buffer_ == nullptr) return {};
  for (std::string_view lines = buffer_->lines(); !lines.empty();) {
    const std::string_view call = last_call_in(lines);
    if (is_same_function(function_in(last_line(call)), function)) {
      taken_ = true;
      return call.substr(0, call.size() - 1);
    }
    lines.remove_suffix(call.size());
  }
  return {};
}

std::string_view DriverLines::last() noexcept {
  if (buffer_ == nullptr || buffer_->size == 0) return {};
  taken_ = true;
  const std::string_view call = last_call_in(buffer_->lines());
  return call.substr(0, call.size() - 1);
}

std::string_view DriverLines::returning(abi::Result code) noexcept {
  if (buffer_ == nullptr || buffer_->size == 0) return {};
  const std::string_view call = last_call_in(buffer_->lines());
  std::string_view returned = until(returned_in(last_line(call)), " ");
  abi::Result said = 0;
  for (; !returned.empty() && returned[0] >= '0' && returned[0] <= '9' && said < 100000;
       returned.remove_prefix(1))
    said = said * 10 + (returned[0] - '0');
  if (said != code || code == 0) return {};
  taken_ = true;
  return call.substr(0, call.size() - 1);
}

}  // namespace kshim::shim
