// SPDX-License-Identifier: Apache-2.0
// The last bytes of a stream, in memory that a child of fork shares.
#pragma once
#include <sys/mman.h>

#include <atomic>

#include "analyzer/core/prelude.h"

namespace kshim::run {

class Tail {
 public:
  static constexpr std::size_t kSize = std::size_t{256} << 10;

  Tail() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) shared_ = new (memory) Shared;
  }
  ~Tail() {
    if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  }
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  /// By one thread of one process. Allocates nothing.
  void add(std::span<const char> bytes) noexcept {
    if (shared_ == nullptr) return;
    std::uint64_t end = shared_->end.load(std::memory_order_relaxed);
    for (const char c : bytes.last(std::min(bytes.size(), kSize))) shared_->bytes[end++ % kSize] = c;
    shared_->end.store(end, std::memory_order_release);
  }
  std::string text() const {
    if (shared_ == nullptr) return {};
    const std::uint64_t end = shared_->end.load(std::memory_order_acquire);
    std::string out;
    out.reserve(std::min<std::uint64_t>(end, kSize));
    for (std::uint64_t at = end - std::min<std::uint64_t>(end, kSize); at < end; ++at)
      out += shared_->bytes[at % kSize];
    return out;
  }

 private:
  struct Shared {
    std::atomic<std::uint64_t> end{0};  ///< bytes kept so far
    std::array<char, kSize> bytes;
  };
  Shared* shared_ = nullptr;
};

}  // namespace kshim::run
