// SPDX-License-Identifier: Apache-2.0
// Bytes that arrive block by block, and libarchive between two of such streams.
#pragma once
#include <atomic>

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

struct archive;
struct archive_entry;

namespace kshim::input {

/// Bytes that may still be read, by several threads.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t bytes) : all_(bytes), left_(bytes) {}
  std::uint64_t all() const noexcept { return all_; }
  void raise(std::uint64_t to) noexcept {
    if (to <= all_) return;
    left_ += to - all_;
    all_ = to;
  }
  bool spend(std::uint64_t bytes) noexcept {
    const bool enough = !exhausted_ && left_.fetch_sub(bytes) >= bytes;
    if (!enough) exhausted_ = true;
    return enough;
  }
  bool exhausted() const noexcept { return exhausted_; }

 private:
  std::atomic<std::uint64_t> all_;
  std::atomic<std::uint64_t> left_;  ///< of no meaning once it is exhausted
  std::atomic<bool> exhausted_{false};
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  /// The next block, valid until the next call. Empty: the end, or a failure.
  virtual Bytes next() = 0;
  /// Up to `size` bytes passed over unread; 0 where only reading leads on.
  virtual std::uint64_t skip(std::uint64_t size);
  /// A clause, or empty when nothing failed.
  const std::string& failure() const noexcept { return failure_; }

 protected:
  void fail(std::string clause) {
    if (failure_.empty()) failure_ = std::move(clause);
  }

 private:
  std::string failure_;
};

/// `head`, then `body`; `passed` hears how much of the body was read, now and then and when the source ends.
class MemorySource final : public Source {
 public:
  MemorySource(Bytes head, Bytes body, std::function<void(Bytes)> passed = {})
      : head_(head), body_(body), unpassed_(body), passed_(std::move(passed)) {}
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  ~MemorySource() override;
  Bytes next() override;
  std::uint64_t skip(std::uint64_t size) override;

 private:
  void pass();

  Bytes head_;
  Bytes body_;
  Bytes unpassed_;  // ends where body_ does
  std::function<void(Bytes)> passed_;
};

/// What was already taken from another source, then its rest.
class ResumedSource final : public Source {
 public:
  ResumedSource(Bytes head, Source& rest) : head_(head), rest_(rest) {}
  Bytes next() override;

 private:
  Bytes head_;
  Source& rest_;
};

/// An archive that libarchive reads from a Source, front to back.
class Stream {
 public:
  enum class Format : std::uint8_t { tar, zip, raw };  ///< raw: what is compressed is one entry
  Stream(Format format, Source& input);

  enum class Step : std::uint8_t { entry, damaged, end, failed };
  /// damaged: one header is not understood, the next step goes on behind it. failed: nothing follows.
  Step next_entry();
  archive_entry* entry() const noexcept { return entry_; }
  ::archive* handle() const noexcept { return archive_.get(); }
  bool compressed() const noexcept;
  /// Of the present entry's header, in the uncompressed archive.
  std::uint64_t header_offset() const noexcept { return header_start_; }
  std::uint64_t input_done() const noexcept;
  /// Why the last call failed: a clause.
  std::string failure() const;
  /// Nothing more can be read, for the reason that libarchive has just given.
  void give_up();

 private:
  struct Free {
    void operator()(::archive* handle) const noexcept;
  };
  static std::int64_t read_input(::archive* handle, void* self, const void** block) noexcept;
  static std::int64_t skip_input(::archive* handle, void* self, std::int64_t size) noexcept;

  Source& input_;
  std::unique_ptr<::archive, Free> archive_;
  archive_entry* entry_ = nullptr;
  std::uint64_t header_start_ = 0;
  bool in_header_ = false;
  bool open_ = false;
  std::string last_words_;
};

/// The present entry's bytes, holes filled with zeros.
class EntrySource final : public Source {
 public:
  EntrySource(Stream& stream, std::uint64_t size, ByteBudget& budget)
      : stream_(stream), budget_(budget), size_(size) {}
  Bytes next() override;
  /// The next block as stored: what holes would add is left out.
  Bytes next_stored();

 private:
  Stream& stream_;
  ByteBudget& budget_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;        // of the next byte to hand out
  std::uint64_t block_at_ = 0;  // of block_
  Bytes block_;
  bool ended_ = false;
};

}  // namespace kshim::input
