// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "analyzer/input/files/container_queue.h"
#include "analyzer/input/files/container_walk.h"
#include "analyzer/input/files/container_zip_index.h"

namespace kshim::scan {
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
  constexpr std::uint32_t kElsewhere = 0xFFFFFFFF;
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

bool known_method(std::uint16_t method) {
  for (const std::uint16_t known : kMethods)
    if (method == known) return true;
  return false;
}

}  // namespace

class ZipWalk {
 public:
  ZipWalk(Walk& walk, Bytes bytes, const Place& place, const ZipIndex& index)
      : walk_(walk), bytes_(bytes), place_(place), index_(index), buffer_(walk.memory()) {}

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
      if (queue.rows_.size() == walk_.limits().members) {
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
    if (!known_method(entry.method))
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
    MemorySource input(header, *data, walk_.visitor().passed);
    Stream stream(Stream::Format::zip, input);
    if (stream.next_entry() != Stream::Step::entry) return note("cannot be read (" + stream.failure() + ")");
    EntrySource source(stream, entry.size, walk_.budget());
    walk_.member(place_, candidate, source, buffer_, stored ? *data : Bytes());
  }

  Walk& walk_;
  Bytes bytes_;
  const Place& place_;
  ZipIndex index_;
  Buffer buffer_;
  std::uint64_t done_ = 0;
  std::atomic<std::uint64_t> own_{0};
  std::atomic<std::uint64_t>* read_ = &own_;  // compressed bytes of members so far
};

void walk_zip(Walk& walk, Bytes bytes, const Place& place) {
  const auto index = ZipIndex::open(bytes);
  if (index) {
    ZipWalk zip(walk, bytes, place, *index);
    MemberQueue* queue = place.depth == 0 ? walk.visitor().queue : nullptr;
    return queue != nullptr ? zip.run(*queue) : zip.run();
  }
  if (!walk.takes_whole(place)) return;
  walk.note(place, {}, bytes.size(), "has no directory at its end: read from its start, as far as that goes");
  MemorySource source({}, bytes, walk.visitor().passed);
  walk_stream(walk, Stream::Format::zip, source, {}, place);
}

}  // namespace kshim::scan
