// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_stream.h"

#include <archive.h>
#include <archive_entry.h>

#include "analyzer/input/files/container.h"

namespace kshim::input {
namespace {

// Small, as a few bytes may inflate to 32,768 times as many before anybody is asked again.
constexpr std::size_t kBlock = 16U << 10;
// One header with all its extensions; libarchive itself bounds names but not the maps of sparse files.
constexpr std::uint64_t kHeaderMax = 16U << 20;

// Read bytes that are told of at once.
constexpr std::size_t kPassed = 4U << 20;

using Support = int (*)(archive*);

/// Filters that this libarchive has built in: of the others it would start a program.
const std::array<Support, 4>& built_in_filters() {
  static const std::array<Support, 4> filters = [] {
    std::array<Support, 4> known = {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                                    archive_read_support_filter_xz, archive_read_support_filter_zstd};
    for (Support& support : known) {
      archive* probe = archive_read_new();
      if (probe == nullptr || support(probe) != ARCHIVE_OK) support = nullptr;
      if (probe != nullptr) archive_read_free(probe);
    }
    return known;
  }();
  return filters;
}

Bytes take(Bytes& from, std::size_t size) {
  const Bytes block = from.first(std::min(size, from.size()));
  from = from.subspan(block.size());
  return block;
}

}  // namespace

std::uint64_t Source::skip(std::uint64_t) { return 0; }

// Called before a block is taken: the reader of the one before is done with it.
void MemorySource::pass() {
  const std::size_t read = unpassed_.size() - body_.size();
  if (!passed_ || (read < kPassed && !body_.empty())) return;
  const Bytes done = take(unpassed_, read);
  if (!done.empty()) passed_(done);
}

// The end of a member: what is left of it nobody reads, and small members end in their first block.
MemorySource::~MemorySource() {
  if (passed_ && !unpassed_.empty()) passed_(unpassed_);
}

Bytes MemorySource::next() {
  if (!head_.empty()) return std::exchange(head_, {});
  pass();
  return take(body_, kBlock);
}

std::uint64_t MemorySource::skip(std::uint64_t size) {
  if (!head_.empty()) return 0;
  return take(body_, static_cast<std::size_t>(std::min<std::uint64_t>(size, body_.size()))).size();
}

Bytes ResumedSource::next() {
  if (!head_.empty()) return take(head_, kBlock);
  const Bytes block = rest_.next();
  if (block.empty() && !rest_.failure().empty()) fail(rest_.failure());
  return block;
}

void Stream::Free::operator()(::archive* handle) const noexcept { archive_read_free(handle); }

Stream::Stream(Format format, Source& input) : input_(input), archive_(archive_read_new()) {
  archive* handle = archive_.get();
  if (handle == nullptr) return;
  if (format == Format::zip) {
    archive_read_support_format_zip_streamable(handle);
  } else {
    format == Format::tar ? archive_read_support_format_tar(handle) : archive_read_support_format_raw(handle);
    for (const Support support : built_in_filters())
      if (support != nullptr) support(handle);
  }
  archive_read_set_callback_data(handle, this);
  archive_read_set_read_callback(handle, read_input);
  archive_read_set_skip_callback(handle, skip_input);
  if (archive_read_open1(handle) != ARCHIVE_OK) return;
  // A filter in a filter multiplies what one block of input inflates to. "none" counts as one.
  if (archive_filter_count(handle) > 2)
    archive_set_error(handle, EINVAL, "compressed more than once");
  else
    open_ = true;
}

// Called by C: no exception may leave these two.
std::int64_t Stream::read_input(::archive* handle, void* self, const void** block) noexcept {
  auto& stream = *static_cast<Stream*>(self);
  if (stream.in_header_ &&
      static_cast<std::uint64_t>(archive_filter_bytes(handle, 0)) > stream.header_start_ + kHeaderMax) {
    archive_set_error(handle, EINVAL, "a header is larger than %d bytes", static_cast<int>(kHeaderMax));
    return -1;
  }
  const Bytes bytes = stream.input_.next();
  *block = bytes.data();
  if (!bytes.empty() || stream.input_.failure().empty()) return static_cast<std::int64_t>(bytes.size());
  archive_set_error(handle, EINVAL, "the stream around it is damaged");
  return -1;
}

std::int64_t Stream::skip_input(::archive*, void* self, std::int64_t size) noexcept {
  if (size <= 0) return 0;
  return static_cast<std::int64_t>(static_cast<Stream*>(self)->input_.skip(static_cast<std::uint64_t>(size)));
}

Stream::Step Stream::next_entry() {
  if (!open_) return Step::failed;
  header_start_ = static_cast<std::uint64_t>(archive_filter_bytes(archive_.get(), 0));
  in_header_ = true;
  const int result = archive_read_next_header(archive_.get(), &entry_);
  in_header_ = false;
  switch (result) {
    case ARCHIVE_OK:
    case ARCHIVE_WARN:  // a name that does not convert
      return Step::entry;
    case ARCHIVE_EOF:
      return Step::end;
    case ARCHIVE_RETRY:
      return Step::damaged;
    default:
      give_up();
      return Step::failed;
  }
}

bool Stream::compressed() const noexcept { return archive_filter_count(archive_.get()) > 1; }

std::uint64_t Stream::input_done() const noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(archive_filter_bytes(archive_.get(), -1), 0));
}

void Stream::give_up() {
  if (open_) last_words_ = failure();
  open_ = false;
}

std::string Stream::failure() const {
  if (!last_words_.empty()) return last_words_;
  const char* text = archive_ == nullptr ? "out of memory" : archive_error_string(archive_.get());
  return text == nullptr ? "unknown reason" : text;
}

Bytes EntrySource::next_stored() {
  if (ended_) return {};
  for (;;) {
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t at = 0;
    const int result = archive_read_data_block(stream_.handle(), &data, &size, &at);
    if (result == ARCHIVE_OK && size == 0) continue;
    if (result == ARCHIVE_OK && at >= 0) {
      if (!budget_.spend(size)) break;
      block_at_ = static_cast<std::uint64_t>(at);
      return {static_cast<const std::byte*>(data), size};
    }
    if (result == ARCHIVE_FATAL) stream_.give_up();
    if (result != ARCHIVE_EOF) fail("cannot be read (" + stream_.failure() + ")");
    break;
  }
  if (budget_.exhausted()) fail("is beyond the limit of what is read of one container");
  ended_ = true;
  return {};
}

Bytes EntrySource::next() {
  static constexpr std::array<std::byte, 64U << 10> kZeros{};
  if (block_.empty()) {
    block_ = next_stored();
    if (!failure().empty()) return {};
    // A hole at the end: tar says how long the file is.
    if (ended_)
      block_at_ = size_ == UINT64_MAX || archive_entry_sparse_count(stream_.entry()) == 0 ? at_ : size_;
  }
  if (block_at_ < at_) {
    if (ended_) return {};
    ended_ = true;
    fail("has parts that overlap");
    return {};
  }
  if (block_at_ > at_) {
    const Bytes hole = Bytes(kZeros).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), block_at_ - at_)));
    at_ += hole.size();
    if (budget_.spend(hole.size())) return hole;
    fail("is beyond the limit of what is read of one container");
    return {};
  }
  at_ += block_.size();
  return std::exchange(block_, {});
}

std::string inflate(Bytes packed, std::uint64_t most, const std::function<bool(Bytes)>& take) {
  MemorySource input({}, packed);
  Stream stream(Stream::Format::raw, input);
  if (stream.next_entry() != Stream::Step::entry) return "cannot be read (" + stream.failure() + ")";
  ByteBudget budget(most);
  EntrySource source(stream, UINT64_MAX, budget);
  for (Bytes block = source.next(); !block.empty(); block = source.next())
    if (!take(block)) return {};
  return source.failure();
}

}  // namespace kshim::input
