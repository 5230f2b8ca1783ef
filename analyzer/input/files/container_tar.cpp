// SPDX-License-Identifier: Apache-2.0
// Tarballs, and zips that lost their directory: what libarchive reads front to back.
#include <archive.h>
#include <archive_entry.h>

#include "analyzer/input/files/container_walk.h"

namespace kshim::scan {
namespace {

constexpr std::uint64_t kHeaderBytes = 512;

Candidate candidate_of(const Stream& stream) {
  const char* name = archive_entry_pathname(stream.entry());
  const bool sized =
      archive_entry_size_is_set(stream.entry()) != 0 && archive_entry_size(stream.entry()) >= 0;
  return {name == nullptr ? std::string_view() : std::string_view(name),
          sized ? static_cast<std::uint64_t>(archive_entry_size(stream.entry())) : kUnknownSize,
          stream.header_offset()};
}

bool is_file(archive_entry* entry) {
  return archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr;
}

/// Where a member's bytes lie in the archive's own, if they do: an uncompressed tar without holes.
Bytes in_place(Bytes memory, Bytes block, const Candidate& member, archive_entry* entry) {
  if (block.data() < memory.data() || block.data() >= memory.data() + memory.size()) return {};
  if (member.size == kUnknownSize || archive_entry_sparse_count(entry) != 0) return {};
  return slice(memory, static_cast<std::uint64_t>(block.data() - memory.data()), member.size).value_or({});
}

void skip_rest(Stream& stream, EntrySource& source) {
  if (!stream.compressed()) {
    archive_read_data_skip(stream.handle());
    return;
  }
  while (!source.next_stored().empty()) {
  }
}

void present_entry(Walk& walk, Stream& stream, Bytes memory, Buffer& buffer, const Place& place) {
  const Candidate member = candidate_of(stream);
  if (place.depth == 0 && walk.visitor().entry)
    walk.visitor().entry(member.name, archive_entry_filetype(stream.entry()) == AE_IFDIR);
  EntrySource source(stream, member.size, walk.budget());
  if (!is_file(stream.entry()) || !walk.wanted(place, member)) return skip_rest(stream, source);
  if (archive_entry_is_encrypted(stream.entry()) != 0) {
    walk.note(place, member.name, member.offset, "is encrypted");
    return skip_rest(stream, source);
  }
  const Bytes first = memory.empty() || stream.compressed() ? Bytes() : source.next();
  const Bytes whole = in_place(memory, first, member, stream.entry());
  if (!whole.empty()) {
    walk.member(place, member, whole);
  } else {
    ResumedSource all(first, source);
    walk.member(place, member, all, buffer);
  }
  if (!walk.stopped()) skip_rest(stream, source);
}

std::string_view link_of(archive_entry* entry) {
  const char* link = archive_entry_hardlink(entry);
  if (link == nullptr) link = archive_entry_symlink(entry);
  return link == nullptr ? std::string_view() : std::string_view(link);
}

}  // namespace

void list_tar(Bytes tar, const std::function<bool(const TarEntry&)>& visit) {
  MemorySource input({}, tar);
  Stream stream(Stream::Format::tar, input);
  Budget budget(tar.size());
  while (stream.next_entry() == Stream::Step::entry && !stream.compressed()) {
    const Candidate member = candidate_of(stream);
    TarEntry entry{member.name, link_of(stream.entry()), {}};
    if (is_file(stream.entry()) && member.size != 0) {
      EntrySource source(stream, member.size, budget);
      entry.bytes = in_place(tar, source.next(), member, stream.entry());
    }
    if (!visit(entry)) return;
    archive_read_data_skip(stream.handle());
  }
}

void walk_stream(Walk& walk, Stream::Format format, Source& input, Bytes memory, const Place& place) {
  Stream stream(format, input);
  Buffer buffer(walk.memory());
  bool damage_told = false;
  for (;;) {
    const Stream::Step step = stream.next_entry();
    if (!walk.count_member(place) || !walk.budget().spend(kHeaderBytes)) return;
    walk.progress(place, stream.input_done());
    switch (step) {
      case Stream::Step::end:
        return;
      case Stream::Step::failed:
        return walk.note(place, {}, stream.header_offset(),
                         "cannot be read further (" + stream.failure() + ")");
      case Stream::Step::damaged:
        if (!damage_told)
          walk.note(place, {}, stream.header_offset(), "is damaged (" + stream.failure() + ")");
        damage_told = true;
        break;
      case Stream::Step::entry:
        damage_told = false;
        present_entry(walk, stream, memory, buffer, place);
        break;
    }
  }
}

}  // namespace kshim::scan
