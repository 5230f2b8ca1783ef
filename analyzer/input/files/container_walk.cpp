// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_walk.h"

#include <archive.h>
#include <archive_entry.h>

#include "analyzer/device_code/mapped_file.h"
#include "kshim/image/archive.h"

namespace kshim::input {
namespace {

std::string full_name(const ContainerPlace& place, std::string_view name) {
  return place.prefix + std::string(name);
}

Bytes front(Bytes bytes, std::size_t size) { return bytes.first(std::min(bytes.size(), size)); }

using image::ArchiveMember;
using image::ArchiveReader;

/// A thin archive's member is a file beside it, or a member of an archive beside it.
void thin_member(Walk& walk, const ContainerPlace& place, const Candidate& candidate,
                 const ArchiveMember& member) {
  const auto path = std::filesystem::path(walk.path).parent_path() / std::string(member.name);
  // The kernel would stop at a NUL and open something else.
  if (member.name.find('\0') != std::string_view::npos)
    return walk.note(place, candidate.name, candidate.offset, "has a name that no file has");
  // Asked first: merely opening some devices does something.
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    return walk.note(place, candidate.name, candidate.offset, "is not a regular file with contents");
  const auto file = MappedFile::open(path);
  if (const auto* clause = std::get_if<std::string>(&file))
    return walk.note(place, candidate.name, candidate.offset, *clause);
  Bytes bytes = std::get<MappedFile>(file).bytes();
  if (member.origin != 0) {
    auto inner = ArchiveReader::open(bytes);
    if (!inner) return walk.note(place, candidate.name, candidate.offset, describe(inner.error().code));
    ArchiveReader reader = *inner;
    const auto found = reader.at(member.origin);
    if (!found) return walk.note(place, candidate.name, candidate.offset, describe(found.error().code));
    bytes = found->bytes;
    const std::string name = std::string(candidate.name) + "!" + std::string(found->name);
    const Candidate named{name, bytes.size(), candidate.offset};
    if (walk.wanted(place, named)) walk.member(place, named, bytes);
    return;
  }
  if (bytes.size() > walk.limits.member_bytes)
    return walk.note(place, candidate.name, candidate.offset, "is larger than what is read of one member");
  walk.member(place, candidate, bytes);
}

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

void present_entry(Walk& walk, Stream& stream, Bytes memory, Buffer& buffer, const ContainerPlace& place) {
  const Candidate member = candidate_of(stream);
  if (place.depth == 0 && walk.visitor.entry)
    walk.visitor.entry(member.name, archive_entry_filetype(stream.entry()) == AE_IFDIR);
  EntrySource source(stream, member.size, walk.budget);
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

void Walk::note(const ContainerPlace& place, std::string_view name, std::uint64_t offset,
                std::string clause) const {
  if (visitor.damaged) visitor.damaged(full_name(place, name), offset, std::move(clause));
}

void Walk::progress(const ContainerPlace& place, std::uint64_t done) const {
  if (place.depth == 0 && visitor.progress) visitor.progress(done);
}

bool Walk::count_member(const ContainerPlace& place) {
  if (stopped()) return false;
  if (++members_ <= limits.members) return true;
  stopped_ = true;
  note_too_many(place);
  return false;
}

void Walk::note_too_many(const ContainerPlace& place) const {
  note(place, {}, 0, fmt::format("holds more than {} members: the rest is not read", limits.members));
}

bool Walk::takes_whole(const ContainerPlace& place) const noexcept {
  return place.depth != 0 || visitor.queue == nullptr || visitor.queue->take_whole();
}

bool Walk::asked(const ContainerPlace& place, const Candidate& member) const {
  return !visitor.wants || visitor.wants(full_name(place, member.name), member.size);
}

bool Walk::wanted(const ContainerPlace& place, const Candidate& member) const {
  if (member.size == 0 || (!is_container_name(member.name) && !asked(place, member))) return false;
  if (member.size == kUnknownSize || member.size <= limits.member_bytes) return true;
  note(place, member.name, member.offset,
       fmt::format("has {} bytes; members of more than {} are not read", member.size, limits.member_bytes));
  return false;
}

/// Into the buffer, until it holds `until` bytes or the member ends. False: a note says why not.
bool Walk::pull(const ContainerPlace& place, const Candidate& member, Source& source, Buffer& buffer,
                std::size_t until) {
  const char* clause = nullptr;
  while (buffer.size() < until) {
    const Bytes block = source.next();
    if (block.empty()) break;
    if (block.size() > limits.member_bytes - buffer.size()) {
      note(place, member.name, member.offset,
           fmt::format("inflates to more than {} bytes", limits.member_bytes));
      return false;
    }
    if (member.size != kUnknownSize && block.size() > member.size - buffer.size())
      clause = "inflates to more than its header says";
    else if (!buffer.append(block))
      clause = "needs more memory and room for temporary files than there is";
    else
      continue;
    note(place, member.name, member.offset, clause);
    return false;
  }
  if (!source.failure().empty()) {
    note(place, member.name, member.offset, source.failure());
    return false;
  }
  // libarchive compares 32 bits of it.
  if (buffer.size() >= until || member.size == kUnknownSize || buffer.size() == member.size) return true;
  note(place, member.name, member.offset, "inflates to less than its header says");
  return false;
}

void Walk::member(const ContainerPlace& place, const Candidate& member, Bytes bytes) {
  MemorySource nothing_left({}, {});
  Buffer unused(visitor.member_memory);
  if (bytes.empty()) return;
  if (budget.spend(bytes.size())) return this->member(place, member, nothing_left, unused, bytes);
  note(place, member.name, member.offset, "is beyond the limit of what is read of one container");
}

void Walk::member(const ContainerPlace& place, const Candidate& member, Source& source, Buffer& buffer,
                  Bytes whole) {
  buffer.clear();
  if (whole.empty() && !pull(place, member, source, buffer, kFirstBytes)) return;
  const Bytes head = whole.empty() ? buffer.bytes() : whole;
  if (head.empty()) return;
  const ContainerKind kind = container_kind(front(head, kFirstBytes), member.name);
  if (kind != ContainerKind::none) return nested(place, member, kind, source, buffer, whole);
  if (is_container_name(member.name) && !asked(place, member)) return;
  const std::string name = full_name(place, member.name);
  if (visitor.wants_content && !visitor.wants_content(name, front(head, kFirstBytes))) return;
  if (whole.empty()) {
    if (!pull(place, member, source, buffer, SIZE_MAX)) return;
    whole = buffer.bytes();
  } else {
    while (!source.next().empty()) {
    }
    if (!source.failure().empty()) return note(place, member.name, member.offset, source.failure());
  }
  if (visitor.visit) visitor.visit({name, whole});
  if (!visitor.look_behind || place.depth >= limits.depth) return;
  if (const std::uint64_t from = visitor.look_behind({name, whole}); from < whole.size())
    walk_embedded(*this, whole, from, {name + "!", place.depth + 1});
}

void Walk::nested(const ContainerPlace& place, const Candidate& member, ContainerKind kind, Source& source,
                  Buffer& buffer, Bytes whole) {
  if (place.depth >= limits.depth)
    return note(place, member.name, member.offset,
                fmt::format("lies in more than {} containers: not opened", limits.depth));
  const ContainerPlace inner{full_name(place, member.name) + "!", place.depth + 1};
  if (kind == ContainerKind::packed && whole.empty()) {
    ResumedSource all(buffer.bytes(), source);
    walk_packed(*this, member.name, all, inner);
    if (!source.failure().empty()) note(place, member.name, member.offset, source.failure());
    return;
  }
  if (!whole.empty()) return container(kind, whole, inner);
  if (kind != ContainerKind::tar) {
    if (pull(place, member, source, buffer, SIZE_MAX)) container(kind, buffer.bytes(), inner);
    return;
  }
  ResumedSource resumed(buffer.bytes(), source);
  walk_stream(*this, Stream::Format::tar, resumed, {}, inner);
  if (!source.failure().empty()) note(place, member.name, member.offset, source.failure());
}

void Walk::container(ContainerKind kind, Bytes bytes, const ContainerPlace& place) {
  switch (kind) {
    case ContainerKind::none:
      return note(place, {}, 0, "is not a container that is known");
    case ContainerKind::ar:
    case ContainerKind::thin_ar:
      return walk_ar(*this, bytes, place);
    case ContainerKind::zip:
      return walk_zip(*this, bytes, place);
    case ContainerKind::tar: {
      MemorySource source({}, bytes, visitor.passed);
      return walk_stream(*this, Stream::Format::tar, source, bytes, place);
    }
    case ContainerKind::packed: {
      MemorySource source({}, bytes, visitor.passed);
      std::string_view name = place.prefix.empty() ? std::string_view(path) : place.prefix;
      if (name.ends_with('!')) name.remove_suffix(1);
      return walk_packed(*this, name.substr(name.rfind('!') + 1), source, place);
    }
  }
}

void MemberQueue::sort() {
  // The order of equals is the directory's: runs are alike.
  std::ranges::stable_sort(rows_, std::greater(), &Row::compressed_size);
}

std::optional<MemberQueue::Row> MemberQueue::take() noexcept {
  const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= rows_.size()) return std::nullopt;
  return rows_[index];
}

void walk_ar(Walk& walk, Bytes bytes, const ContainerPlace& place) {
  const auto opened = ArchiveReader::open(bytes);
  if (!opened) return walk.note(place, {}, opened.error().offset, describe(opened.error().code));
  ArchiveReader reader = *opened;
  if (reader.thin() && place.depth != 0)
    return walk.note(place, {}, 0, "is a thin archive within a container: its members are not here");
  for (;;) {
    const auto member = reader.next();
    if (!member && member.error().code == Errc::not_found) return walk.progress(place, bytes.size());
    if (!walk.count_member(place)) return;
    if (!member) {
      walk.note(place, reader.name(), member.error().offset, describe(member.error().code));
      continue;
    }
    walk.progress(place, member->offset);
    const Candidate candidate{member->name, member->size, member->offset};
    // A thin archive's reference into another archive is named, and asked about, when that is open.
    if (member->origin == 0 && !walk.wanted(place, candidate)) continue;
    if (reader.thin())
      thin_member(walk, place, candidate, *member);
    else
      walk.member(place, candidate, member->bytes);
  }
}

void list_tar(Bytes tar, const std::function<bool(const TarEntry&)>& visit) {
  MemorySource input({}, tar);
  Stream stream(Stream::Format::tar, input);
  ByteBudget budget(tar.size());
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

void walk_stream(Walk& walk, Stream::Format format, Source& input, Bytes memory,
                 const ContainerPlace& place) {
  Stream stream(format, input);
  Buffer buffer(walk.visitor.member_memory);
  bool damage_told = false;
  for (;;) {
    const Stream::Step step = stream.next_entry();
    if (!walk.count_member(place) || !walk.budget.spend(kHeaderBytes)) return;
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

}  // namespace kshim::input
