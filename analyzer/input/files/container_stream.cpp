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

// Of a zip, at least.
constexpr std::uint64_t kZipHeader = 30;

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

std::string_view text_or_none(const char* text) { return text == nullptr ? std::string_view() : text; }

}  // namespace

void Stream::Free::operator()(::archive* handle) const noexcept { archive_read_free(handle); }

Stream::Stream(Format format, Bytes input, std::function<void(Bytes)> passed)
    : input_(input), passed_(std::move(passed)), zip_(format == Format::zip), archive_(archive_read_new()) {
  archive* handle = archive_.get();
  if (handle == nullptr) return;
  if (zip_) {
    archive_read_support_format_zip_seekable(handle);
    archive_read_set_seek_callback(handle, seek_input);
  } else if (format == Format::cut_zip) {
    archive_read_support_format_zip_streamable(handle);
  } else {
    if (format != Format::raw) archive_read_support_format_tar(handle);
    if (format != Format::tar) archive_read_support_format_raw(handle);
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

// Called by C: no exception may leave these three.
std::int64_t Stream::read_input(::archive* handle, void* self, const void** block) noexcept {
  auto& stream = *static_cast<Stream*>(self);
  if (!stream.zip_ && stream.in_header_ &&
      static_cast<std::uint64_t>(archive_filter_bytes(handle, 0)) > stream.offset_ + kHeaderMax) {
    archive_set_error(handle, EINVAL, "a header is larger than %d bytes", static_cast<int>(kHeaderMax));
    return -1;
  }
  if (stream.read_ >= stream.unpassed_ + kPassed) stream.pass(stream.read_);
  const Bytes rest = stream.input_.subspan(static_cast<std::size_t>(stream.read_));
  *block = rest.data();
  const std::size_t size = std::min(kBlock, rest.size());
  stream.read_ += size;
  return static_cast<std::int64_t>(size);
}

std::int64_t Stream::skip_input(::archive*, void* self, std::int64_t size) noexcept {
  auto& stream = *static_cast<Stream*>(self);
  const auto skipped = std::min<std::int64_t>(std::max<std::int64_t>(size, 0),
                                              static_cast<std::int64_t>(stream.input_.size() - stream.read_));
  stream.read_ += static_cast<std::uint64_t>(skipped);
  return skipped;
}

std::int64_t Stream::seek_input(::archive*, void* self, std::int64_t offset, int whence) noexcept {
  auto& stream = *static_cast<Stream*>(self);
  const auto size = static_cast<std::int64_t>(stream.input_.size());
  const std::int64_t from = whence == SEEK_SET   ? 0
                            : whence == SEEK_CUR ? static_cast<std::int64_t>(stream.read_)
                                                 : size;
  if (offset < -from || offset > size - from) return ARCHIVE_FAILED;
  stream.read_ = static_cast<std::uint64_t>(from + offset);
  return from + offset;
}

void Stream::pass(std::uint64_t until) {
  if (zip_ && (entry_ == nullptr || in_header_)) return;  // in its directory, which comes first
  if (passed_ && until > unpassed_)
    passed_(input_.subspan(static_cast<std::size_t>(unpassed_), static_cast<std::size_t>(until - unpassed_)));
  unpassed_ = until;
}

Stream::Step Stream::next_entry() {
  if (!open_) return Step::failed;
  pass(done());
  at_ = block_at_ = 0;
  block_ = {};
  ended_ = false;
  entry_failure_.clear();
  offset_ = static_cast<std::uint64_t>(archive_filter_bytes(archive_.get(), 0));
  in_header_ = true;
  const int result = archive_read_next_header(archive_.get(), &entry_);
  in_header_ = false;
  switch (result) {
    case ARCHIVE_OK:
    case ARCHIVE_WARN:  // a name that does not convert
      if (zip_) {  // behind what it leapt over; the header's pages were read, of entries of other threads too
        offset_ = done();
        unpassed_ = offset_ - std::min(offset_, kZipHeader);
      }
      return Step::entry;
    case ARCHIVE_EOF:
      return Step::end;
    case ARCHIVE_RETRY:
    case ARCHIVE_FAILED:
      return Step::damaged;
    default:
      give_up();
      return Step::failed;
  }
}

bool Stream::compressed() const noexcept { return archive_filter_count(archive_.get()) > 1; }
bool Stream::is_raw() const noexcept { return archive_format(archive_.get()) == ARCHIVE_FORMAT_RAW; }

std::uint64_t Stream::done() const noexcept {
  const std::int64_t done = archive_ == nullptr ? 0 : archive_filter_bytes(archive_.get(), -1);
  return std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max<std::int64_t>(done, 0)), input_.size());
}

void Stream::give_up() {
  if (open_) last_words_ = failure();
  open_ = false;
}

std::string Stream::failure() const {
  if (!entry_failure_.empty()) return entry_failure_;
  if (!last_words_.empty()) return last_words_;
  const char* text = archive_ == nullptr ? "out of memory" : archive_error_string(archive_.get());
  return text == nullptr ? "unknown reason" : text;
}

std::string_view Stream::name() const noexcept { return text_or_none(archive_entry_pathname(entry_)); }
std::string_view Stream::link() const noexcept {
  const char* link = archive_entry_hardlink(entry_);
  return text_or_none(link != nullptr ? link : archive_entry_symlink(entry_));
}
bool Stream::is_file() const noexcept {
  return archive_entry_filetype(entry_) == AE_IFREG && archive_entry_hardlink(entry_) == nullptr;
}
bool Stream::is_folder() const noexcept { return archive_entry_filetype(entry_) == AE_IFDIR; }
bool Stream::is_encrypted() const noexcept { return archive_entry_is_encrypted(entry_) != 0; }
std::uint64_t Stream::size() const noexcept {
  const bool known = archive_entry_size_is_set(entry_) != 0 && archive_entry_size(entry_) >= 0;
  return known ? static_cast<std::uint64_t>(archive_entry_size(entry_)) : kUnknownSize;
}

Bytes Stream::in_place(ByteBudget& budget) {
  if (compressed() || size() == kUnknownSize || archive_entry_sparse_count(entry_) != 0) return {};
  block_ = next_stored(budget);
  if (block_at_ != 0 || block_.data() < input_.data() || block_.data() >= input_.data() + input_.size())
    return {};
  return slice(input_, static_cast<std::uint64_t>(block_.data() - input_.data()), size()).value_or({});
}

void Stream::skip_rest(ByteBudget& budget) {
  if (!compressed()) {
    archive_read_data_skip(archive_.get());
    return;
  }
  while (!next_stored(budget).empty()) {
  }
}

/// The next block as stored: what holes would add is left out.
Bytes Stream::next_stored(ByteBudget& budget) {
  while (!ended_) {
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t at = 0;
    const int result = archive_read_data_block(archive_.get(), &data, &size, &at);
    if (result == ARCHIVE_OK && size == 0) continue;
    ended_ = result != ARCHIVE_OK || at < 0 || !budget.spend(size);
    if (!ended_) {
      block_at_ = static_cast<std::uint64_t>(at);
      return {static_cast<const std::byte*>(data), size};
    }
    // In a zip, the next entry is found by the directory.
    if (result == ARCHIVE_FATAL && !zip_) give_up();
    if (result != ARCHIVE_EOF) entry_failure_ = "cannot be read (" + failure() + ")";
  }
  if (budget.exhausted()) entry_failure_ = "is beyond the limit of what is read of one container";
  return {};
}

Bytes Stream::next(ByteBudget& budget) {
  static constexpr std::array<std::byte, 64U << 10> kZeros{};
  if (block_.empty()) {
    block_ = next_stored(budget);
    if (failed()) return {};
    // A hole at the end: tar says how long the file is.
    if (ended_) block_at_ = size() == kUnknownSize || archive_entry_sparse_count(entry_) == 0 ? at_ : size();
  }
  if (block_at_ < at_) {
    if (!ended_) entry_failure_ = "has parts that overlap";
    ended_ = true;
    block_ = {};
    return {};
  }
  if (block_at_ > at_) {
    const Bytes hole = Bytes(kZeros).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), block_at_ - at_)));
    at_ += hole.size();
    if (budget.spend(hole.size())) return hole;
    entry_failure_ = "is beyond the limit of what is read of one container";
    return {};
  }
  at_ += block_.size();
  return std::exchange(block_, {});
}

std::string inflate(Bytes packed, std::uint64_t most, const std::function<bool(Bytes)>& take) {
  Stream stream(Stream::Format::raw, packed);
  if (stream.next_entry() != Stream::Step::entry) return "cannot be read (" + stream.failure() + ")";
  ByteBudget budget(most);
  for (Bytes block = stream.next(budget); !block.empty(); block = stream.next(budget))
    if (!take(block)) return {};
  return stream.failed() ? stream.failure() : "";
}

}  // namespace kshim::input
