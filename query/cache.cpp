// SPDX-License-Identifier: Apache-2.0
#include "query/cache.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace kshim::query {
namespace {

constexpr std::size_t kMaxFiles = 64;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;

}  // namespace

struct CachedFile::Entry {
  Identity identity;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  unsigned users = 0;      ///< under State::lock
  std::uint64_t used = 0;  ///< also of this process: when last
  std::size_t bytes = 0;   ///< the same
  bool listed = false;     ///< in State::entries
  CodeFile file;
};

struct CachedFile::State {
  pid_t process = 0;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::uint64_t now = 0;
  Entry* entries[kMaxFiles] = {};

  static void free(Entry* entry) noexcept {
    entry->~Entry();
    std::free(entry);
  }
  /// Under the lock. The entry is freed when its last user gives it back.
  void unlist(Entry*& slot) noexcept {
    Entry* entry = slot;
    slot = nullptr;
    entry->listed = false;
    if (entry->users == 0) free(entry);
  }
  Entry** oldest_unused() noexcept {
    Entry** oldest = nullptr;
    for (Entry*& each : entries)
      if (each != nullptr && each->users == 0 && (oldest == nullptr || each->used < (*oldest)->used))
        oldest = &each;
    return oldest;
  }
  void make_room() noexcept {
    for (;;) {
      std::size_t bytes = 0;
      for (const Entry* each : entries) bytes += each != nullptr ? each->bytes : 0;
      Entry** oldest = bytes > kMaxBytes ? oldest_unused() : nullptr;
      if (oldest == nullptr) return;
      unlist(*oldest);
    }
  }
  /// Under the lock; nullptr where there is no memory.
  Entry* take(const Identity& identity) noexcept {
    Entry** free_slot = nullptr;
    for (Entry*& each : entries) {
      if (each == nullptr) {
        free_slot = &each;
      } else if (each->identity == identity) {
        ++each->users;
        return each;
      }
    }
    void* memory = std::malloc(sizeof(Entry));
    if (memory == nullptr) return nullptr;
    auto* entry = new (memory) Entry;
    entry->identity = identity;
    entry->users = 1;
    if (free_slot == nullptr) {
      free_slot = oldest_unused();
      if (free_slot != nullptr) unlist(*free_slot);
    }
    if (free_slot != nullptr) {  // else as many threads read as many files: this one is not kept
      *free_slot = entry;
      entry->listed = true;
    }
    return entry;
  }
  /// Under the lock.
  void give_back(Entry* entry, std::size_t bytes, bool forget) noexcept {
    --entry->users;
    entry->bytes = bytes;
    entry->used = ++now;
    if (forget && entry->listed)
      for (Entry*& each : entries)
        if (each == entry) {
          unlist(each);
          return;
        }
    if (!entry->listed && entry->users == 0) return free(entry);
    make_room();
  }
};

/// A fork's child has only the thread that forked: locks of the others stay as they were. It begins again,
/// and what was its parent's is left alone.
CachedFile::State* CachedFile::state() noexcept {
  static std::atomic<State*> current{nullptr};
  const pid_t process = ::getpid();
  State* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->process != process) {
    void* memory = std::malloc(sizeof(State));
    if (memory == nullptr) return nullptr;
    auto* fresh = new (memory) State;
    fresh->process = process;
    if (current.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel)) return fresh;
    std::free(memory);
  }
  return seen;
}

CachedFile::CachedFile(const Identity& identity) noexcept : state_(state()) {
  if (state_ == nullptr) return;
  pthread_mutex_lock(&state_->lock);
  entry_ = state_->take(identity);
  pthread_mutex_unlock(&state_->lock);
  if (entry_ != nullptr) pthread_mutex_lock(&entry_->lock);
}

CachedFile::~CachedFile() {
  if (entry_ == nullptr) return;
  const bool forget = forget_ || !entry_->file.is_final();
  const std::size_t bytes = entry_->file.bytes();
  pthread_mutex_unlock(&entry_->lock);
  pthread_mutex_lock(&state_->lock);
  state_->give_back(entry_, bytes, forget);
  pthread_mutex_unlock(&state_->lock);
}

CodeFile* CachedFile::get() const noexcept { return entry_ != nullptr ? &entry_->file : nullptr; }

}  // namespace kshim::query
