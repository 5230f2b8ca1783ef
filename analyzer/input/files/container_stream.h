// SPDX-License-Identifier: Apache-2.0
// Archives and compressed streams in memory, as libarchive reads them.
#pragma once
#include <atomic>

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"

struct archive;
struct archive_entry;

namespace kshim::input {

constexpr std::uint64_t kUnknownSize = UINT64_MAX;

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

class Stream {
 public:
  /// zip: by its directory. cut_zip: from its start on. raw: what is compressed is one entry. packed: a tar,
  /// else raw.
  enum class Format : std::uint8_t { tar, zip, cut_zip, raw, packed };
  /// `passed` hears which bytes were read through, now and then.
  Stream(Format format, Bytes input, std::function<void(Bytes)> passed = {});
  ~Stream() { pass(done()); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  enum class Step : std::uint8_t { entry, damaged, end, failed };
  /// damaged: one header is not understood, the next step goes on behind it. failed: nothing follows.
  Step next_entry();
  bool compressed() const noexcept;
  bool is_raw() const noexcept;
  std::uint64_t done() const noexcept;  ///< bytes of the input
  /// Why next_entry() failed, or why the entry's blocks ended early: a clause.
  std::string failure() const;

  // The present entry:
  std::string_view name() const noexcept;
  std::string_view link() const noexcept;  ///< where a symbolic or hard link leads
  bool is_file() const noexcept;
  bool is_folder() const noexcept;
  bool is_encrypted() const noexcept;
  std::uint64_t size() const noexcept;
  /// Of its header, in the uncompressed archive; in a zip of its data.
  std::uint64_t offset() const noexcept { return offset_; }
  /// The next bytes, holes filled with zeros. Empty: the end, or a failure.
  Bytes next(ByteBudget& budget);
  bool failed() const noexcept { return !entry_failure_.empty(); }
  /// All of it, in the input, where it lies there as it is. To be asked before next().
  Bytes in_place(ByteBudget& budget);
  /// Whether reading an entry to its end proves its bytes.
  bool proves() const noexcept { return zip_; }
  void skip_rest(ByteBudget& budget);

 private:
  struct Free {
    void operator()(::archive* handle) const noexcept;
  };
  static std::int64_t read_input(::archive* handle, void* self, const void** block) noexcept;
  static std::int64_t skip_input(::archive* handle, void* self, std::int64_t size) noexcept;
  static std::int64_t seek_input(::archive* handle, void* self, std::int64_t offset, int whence) noexcept;
  void pass(std::uint64_t until);
  Bytes next_stored(ByteBudget& budget);
  void give_up();

  Bytes input_;
  std::function<void(Bytes)> passed_;
  bool zip_;
  std::uint64_t read_ = 0;      // of the input, by libarchive
  std::uint64_t unpassed_ = 0;  // what passed_ hears next begins here
  std::unique_ptr<::archive, Free> archive_;
  archive_entry* entry_ = nullptr;
  std::uint64_t offset_ = 0;
  bool in_header_ = false;
  bool open_ = false;
  std::string last_words_;
  // Of the present entry:
  std::uint64_t at_ = 0;        // of the next byte to hand out
  std::uint64_t block_at_ = 0;  // of block_
  Bytes block_;
  bool ended_ = false;
  std::string entry_failure_;
};

}  // namespace kshim::input
