// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_walk.h"

namespace kshim::input {

struct ZipEntry {
  std::string_view name;
  std::uint64_t offset = 0;  ///< of its local header
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflate
  bool encrypted = false;
  bool file = true;  ///< neither a folder nor a symbolic link
};

class ZipIndex {
 public:
  ZipIndex() = default;
  /// Errc::not_found: no directory, as in a zip that was cut off.
  static Result<ZipIndex> open(Bytes bytes) noexcept;
  /// Errc::not_found: the regular end. Anything else: damaged at error().offset, and nothing follows.
  Result<ZipEntry> next() noexcept;
  /// Where the directory goes on, for at().
  std::uint64_t position() const noexcept { return cursor_; }
  Result<ZipEntry> at(std::uint64_t position) const noexcept;
  /// The entry's compressed bytes.
  Result<Bytes> data(const ZipEntry& entry) const noexcept;

 private:
  bool locate(std::uint64_t end_record) noexcept;

  Bytes bytes_;
  std::uint64_t base_ = 0;    // what stands before the zip: offsets count from here
  std::uint64_t cursor_ = 0;  // in the directory
  std::uint64_t end_ = 0;     // of the directory
};

namespace {

constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kDirectoryMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEnd64Magic = 0x06064b50;
constexpr std::uint32_t kLocator64Magic = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint64_t kDirectorySize = 46;
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kLocator64Size = 20;
constexpr std::uint64_t kCommentMax = 0xFFFF;
constexpr std::uint32_t kElsewhere = 0xFFFFFFFF;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kFlagEncrypted = 1;
constexpr unsigned kMadeByUnix = 3;
constexpr unsigned kTypeMask = 0170000;
constexpr unsigned kTypeLink = 0120000;

/// A field of a header that is known to be there.
template <class T>
T field(Bytes bytes, std::uint64_t offset) noexcept {
  return read_le<T>(bytes, offset).value_or(0);
}

/// The extra field's zip64 part, empty where there is none.
Bytes zip64_extra(Bytes extra) noexcept {
  while (extra.size() >= 4) {
    const auto part = slice(extra, 4, field<std::uint16_t>(extra, 2));
    if (!part) break;
    if (field<std::uint16_t>(extra, 0) == kZip64Extra) return *part;
    extra = extra.subspan(4 + part->size());
  }
  return {};
}

/// The value of a 32-bit field: itself, or the next 64 bits of the zip64 part.
bool widen(std::uint32_t narrow, Bytes& zip64, std::uint64_t& out) noexcept {
  out = narrow;
  if (narrow != kElsewhere) return true;
  const auto wide = read_le<std::uint64_t>(zip64, 0);
  if (!wide) return zip64.empty();  // four gigabytes less one byte, or a lie that the bounds will find
  out = *wide;
  zip64 = zip64.subspan(sizeof(std::uint64_t));
  return true;
}

}  // namespace

/// Sets base_, cursor_ and end_ from an end record.
bool ZipIndex::locate(std::uint64_t end_record) noexcept {
  std::uint64_t size = field<std::uint32_t>(bytes_, end_record + 12);
  std::uint64_t offset = field<std::uint32_t>(bytes_, end_record + 16);
  end_ = end_record;
  if (end_record >= kLocator64Size &&
      field<std::uint32_t>(bytes_, end_record - kLocator64Size) == kLocator64Magic) {
    const std::uint64_t at = field<std::uint64_t>(bytes_, end_record - kLocator64Size + 8);
    constexpr std::uint64_t kEnd64Size = 56;
    // Where the locator says, or right before it when something was put in front of the zip.
    const std::uint64_t before = end_record - kLocator64Size;
    const std::uint64_t candidates[] = {at, before >= kEnd64Size ? before - kEnd64Size : at};
    for (const std::uint64_t end64 : candidates) {
      if (end64 > before || before - end64 < kEnd64Size || field<std::uint32_t>(bytes_, end64) != kEnd64Magic)
        continue;
      size = field<std::uint64_t>(bytes_, end64 + 40);
      offset = field<std::uint64_t>(bytes_, end64 + 48);
      end_ = end64;
      break;
    }
  }
  if (size > end_ || offset > end_ - size) return false;
  base_ = 0;
  cursor_ = offset;
  if (size != 0 && field<std::uint32_t>(bytes_, offset) != kDirectoryMagic) {
    base_ = end_ - size - offset;
    cursor_ = base_ + offset;
    if (field<std::uint32_t>(bytes_, cursor_) != kDirectoryMagic) return false;
  }
  end_ = cursor_ + size;
  return true;
}

Result<ZipIndex> ZipIndex::open(Bytes bytes) noexcept {
  ZipIndex index;
  index.bytes_ = bytes;
  if (bytes.size() < kEndSize) return Error{Errc::not_found, bytes.size()};
  const std::uint64_t last = bytes.size() - kEndSize;
  for (std::uint64_t back = 0; back <= std::min(last, kCommentMax); ++back) {
    if (field<std::uint32_t>(bytes, last - back) != kEndMagic) continue;
    if (field<std::uint16_t>(bytes, last - back + 20) <= back && index.locate(last - back)) return index;
  }
  return Error{Errc::not_found, bytes.size()};
}

Result<ZipEntry> ZipIndex::next() noexcept {
  if (cursor_ >= end_) return Error{Errc::not_found, end_};
  const std::uint64_t start = cursor_;
  cursor_ = end_;
  if (end_ - start < kDirectorySize) return Error{Errc::truncated, start};
  if (field<std::uint32_t>(bytes_, start) != kDirectoryMagic) return Error{Errc::bad_magic, start};
  const std::uint64_t name_size = field<std::uint16_t>(bytes_, start + 28);
  const std::uint64_t extra_size = field<std::uint16_t>(bytes_, start + 30);
  const std::uint64_t comment_size = field<std::uint16_t>(bytes_, start + 32);
  const std::uint64_t size = kDirectorySize + name_size + extra_size + comment_size;
  if (size > end_ - start) return Error{Errc::truncated, start};
  cursor_ = start + size;
  ZipEntry entry;
  entry.name = text_of(slice(bytes_, start + kDirectorySize, name_size).value_or({}));
  entry.encrypted = (field<std::uint16_t>(bytes_, start + 8) & kFlagEncrypted) != 0;
  entry.method = field<std::uint16_t>(bytes_, start + 10);
  entry.crc = field<std::uint32_t>(bytes_, start + 16);
  Bytes zip64 = zip64_extra(slice(bytes_, start + kDirectorySize + name_size, extra_size).value_or({}));
  if (!widen(field<std::uint32_t>(bytes_, start + 24), zip64, entry.size) ||
      !widen(field<std::uint32_t>(bytes_, start + 20), zip64, entry.compressed_size) ||
      !widen(field<std::uint32_t>(bytes_, start + 42), zip64, entry.offset))
    return Error{Errc::truncated, start + kDirectorySize + name_size};
  if (entry.offset > UINT64_MAX - base_) return Error{Errc::overflow, start + 42};
  entry.offset += base_;
  const bool unix_mode = field<std::uint16_t>(bytes_, start + 4) >> 8U == kMadeByUnix;
  const bool link = unix_mode && (field<std::uint32_t>(bytes_, start + 38) >> 16U & kTypeMask) == kTypeLink;
  entry.file = !link && !entry.name.ends_with('/');
  return entry;
}

Result<ZipEntry> ZipIndex::at(std::uint64_t position) const noexcept {
  ZipIndex there = *this;
  there.cursor_ = position;
  return there.next();
}

Result<Bytes> ZipIndex::data(const ZipEntry& entry) const noexcept {
  const auto header = slice(bytes_, entry.offset, kLocalSize);
  if (!header) return header.error();
  if (field<std::uint32_t>(*header, 0) != kLocalMagic) return Error{Errc::bad_magic, entry.offset};
  const std::uint64_t skipped =
      kLocalSize + field<std::uint16_t>(*header, 26) + field<std::uint16_t>(*header, 28);
  return slice(bytes_, entry.offset + skipped, entry.compressed_size);
}

namespace {

constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kMethods[] = {kStored, 8, 12, 14, 93, 95};  // and deflate, bzip2, lzma, zstd, xz
constexpr std::uint16_t kFlagLzmaMarker = 2;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

/// A local header that says what the directory says: libarchive then reads one member without having to
/// believe, or to seek, the zip's own. The sizes are always in a zip64 field.
std::vector<std::byte> local_header(const ZipEntry& entry) {
  std::vector<std::byte> out;
  put(out, std::uint32_t{0x04034b50});
  put(out, std::uint16_t{45});  // version that reads zip64
  put(out, entry.method == 14 ? kFlagLzmaMarker : std::uint16_t{0});
  put(out, entry.method);
  put(out, std::uint32_t{0});  // time and date
  put(out, entry.crc);
  put(out, kElsewhere);
  put(out, kElsewhere);
  put(out, std::uint16_t{1});   // name
  put(out, std::uint16_t{20});  // extra
  put(out, 'm');
  put(out, std::uint16_t{1});
  put(out, std::uint16_t{16});
  put(out, entry.size);
  put(out, entry.compressed_size);
  return out;
}

}  // namespace

class ZipWalk {
 public:
  ZipWalk(Walk& walk, Bytes bytes, const ContainerPlace& place, const ZipIndex& index)
      : walk_(walk), bytes_(bytes), place_(place), index_(index), buffer_(walk.visitor.member_memory) {}

  void run() {
    for (;;) {
      const auto entry = index_.next();
      if (!entry && entry.error().code == Errc::not_found) return;
      if (!walk_.count_member(place_)) return;
      if (!entry) return note_directory(entry.error());
      member(*entry);
    }
  }

  void run(MemberQueue& queue) {
    read_ = &queue.read_;
    std::call_once(queue.listed_, [&] { list(queue); });
    while (const auto row = queue.take()) {
      const auto entry = index_.at(row->directory_offset);
      if (!entry || walk_.stopped()) return;
      member(*entry);
    }
  }

 private:
  void note_directory(Error error) const {  // nothing follows
    walk_.note(place_, {}, error.offset, fmt::format("has a directory that {}", describe(error.code)));
  }

  void list(MemberQueue& queue) {
    for (ZipIndex index = index_;;) {
      const std::uint64_t position = index.position();
      const auto entry = index.next();
      if (!entry && entry.error().code == Errc::not_found) break;
      if (queue.rows_.size() == walk_.limits.members) {
        walk_.note_too_many(place_);
        break;
      }
      if (!entry) {
        note_directory(entry.error());
        break;
      }
      queue.rows_.push_back({entry->compressed_size, position});
    }
    queue.sort();
  }

  void member(const ZipEntry& entry) {
    if (entry.file) open(entry);
    done_ += std::min<std::uint64_t>(entry.compressed_size, bytes_.size() - done_);
    walk_.progress(place_, done_);
  }

  void open(const ZipEntry& entry) {
    const Candidate candidate{entry.name, entry.size, entry.offset};
    if (!walk_.wanted(place_, candidate)) return;
    const auto note = [&](std::string clause) {
      walk_.note(place_, entry.name, entry.offset, std::move(clause));
    };
    if (entry.encrypted) return note("is encrypted");
    if (std::ranges::find(kMethods, entry.method) == std::end(kMethods))
      return note(fmt::format("is compressed by method {}, which is not read", entry.method));
    const auto data = index_.data(entry);
    if (!data) return note(describe(data.error().code));
    // Members lie side by side in an honest zip. Where they share bytes, a small file inflates without end.
    std::uint64_t read = read_->load();
    do {
      if (entry.compressed_size > bytes_.size() - read)
        return note("is not read: the members add up to more than the file, so some overlap");
    } while (!read_->compare_exchange_weak(read, read + entry.compressed_size));
    const bool stored = entry.method == kStored;
    if (stored && entry.size != entry.compressed_size) return note(describe(Errc::bad_header));

    const std::vector<std::byte> header = local_header(entry);
    MemorySource input(header, *data, walk_.visitor.passed);
    Stream stream(Stream::Format::zip, input);
    if (stream.next_entry() != Stream::Step::entry) return note("cannot be read (" + stream.failure() + ")");
    EntrySource source(stream, entry.size, walk_.budget);
    walk_.member(place_, candidate, source, buffer_, stored ? *data : Bytes());
  }

  Walk& walk_;
  Bytes bytes_;
  const ContainerPlace& place_;
  ZipIndex index_;
  Buffer buffer_;
  std::uint64_t done_ = 0;
  std::atomic<std::uint64_t> own_{0};
  std::atomic<std::uint64_t>* read_ = &own_;  // compressed bytes of members so far
};

bool has_zip_directory(Bytes bytes) noexcept { return ZipIndex::open(bytes).ok(); }

void walk_zip(Walk& walk, Bytes bytes, const ContainerPlace& place) {
  const auto index = ZipIndex::open(bytes);
  if (index) {
    ZipWalk zip(walk, bytes, place, *index);
    MemberQueue* queue = place.depth == 0 ? walk.visitor.queue : nullptr;
    return queue != nullptr ? zip.run(*queue) : zip.run();
  }
  if (!walk.takes_whole(place)) return;
  walk.note(place, {}, bytes.size(), "has no directory at its end: read from its start, as far as that goes");
  MemorySource source({}, bytes, walk.visitor.passed);
  walk_stream(walk, Stream::Format::zip, source, {}, place);
}

}  // namespace kshim::input
