// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_walk.h"

#include "analyzer/core/text.h"
#include "analyzer/input/files/file_kind.h"
#include "kshim/image/archive.h"

namespace kshim::input {
namespace {

using image::ArchiveReader;

constexpr std::uint64_t kHeaderBytes = 512;
constexpr std::uint64_t kLarge = std::uint64_t{16} << 20;  // members that a queue hands out first

std::string full_name(const ContainerPlace& place, std::string_view name) {
  return place.prefix + std::string(name);
}

Bytes front(Bytes bytes) { return bytes.first(std::min(bytes.size(), kFirstBytes)); }

bool is_empty_zip(Bytes bytes) {
  constexpr std::size_t kEndRecord = 22;
  return bytes.size() == kEndRecord && text_of(bytes).starts_with("PK\5\6");
}

}  // namespace

void Walk::note(const ContainerPlace& place, std::string_view name, std::uint64_t offset,
                std::string clause) const {
  if (visitor.damaged) visitor.damaged(full_name(place, name), offset, std::move(clause));
}

void Walk::progress(const ContainerPlace& place, std::uint64_t done) {
  if (place.depth != 0 || done < done_) return;
  done_ = done;
  if (visitor.progress) visitor.progress(done);
}

bool Walk::count_member(const ContainerPlace& place) {
  if (stopped()) return false;
  if (++members_ <= limits.members) return true;
  stopped_ = true;
  note(place, {}, 0, fmt::format("holds more than {} members: the rest is not read", limits.members));
  return false;
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
bool Walk::pull(const ContainerPlace& place, const Candidate& member, Stream& stream, Buffer& buffer,
                std::size_t until) {
  const auto refuse = [&](std::string clause) {
    note(place, member.name, member.offset, std::move(clause));
    return false;
  };
  while (buffer.size() < until) {
    const Bytes block = stream.next(budget);
    if (block.empty()) break;
    if (block.size() > limits.member_bytes - buffer.size())
      return refuse(fmt::format("inflates to more than {} bytes", limits.member_bytes));
    if (member.size != kUnknownSize && block.size() > member.size - buffer.size())
      return refuse("inflates to more than its header says");
    if (!buffer.append(block)) return refuse("needs more memory and room for temporary files than there is");
  }
  if (stream.failed()) return refuse(stream.failure());
  // libarchive compares 32 bits of it.
  if (buffer.size() >= until || member.size == kUnknownSize || buffer.size() == member.size) return true;
  return refuse("inflates to less than its header says");
}

void Walk::member(const ContainerPlace& place, const Candidate& candidate, Bytes bytes) {
  Buffer unused(0);
  if (bytes.empty()) return;
  if (budget.spend(bytes.size())) return member(place, candidate, nullptr, unused, bytes);
  note(place, candidate.name, candidate.offset, "is beyond the limit of what is read of one container");
}

/// What arrives by a stream, into a buffer that may hold its beginning; or what is in memory as a whole,
/// unproved until the stream, if any, was read to its end.
void Walk::member(const ContainerPlace& place, const Candidate& member, Stream* stream, Buffer& buffer,
                  Bytes whole) {
  if (whole.empty() && !pull(place, member, *stream, buffer, kFirstBytes)) return;
  const Bytes head = front(whole.empty() ? buffer.bytes() : whole);
  if (head.empty()) return;
  const ContainerKind kind = container_kind(head, member.name);
  const std::string name = full_name(place, member.name);
  if (kind != ContainerKind::none) {
    if (place.depth >= limits.depth)
      return note(place, member.name, member.offset,
                  fmt::format("lies in more than {} containers: not opened", limits.depth));
  } else {
    if (is_container_name(member.name) && !asked(place, member)) return;
    if (visitor.wants_content && !visitor.wants_content(name, head)) return;
  }
  if (whole.empty()) {
    if (!pull(place, member, *stream, buffer, SIZE_MAX)) return;
    whole = buffer.bytes();
  } else if (stream != nullptr) {
    while (!stream->next(budget).empty()) {
    }
    if (stream->failed()) return note(place, member.name, member.offset, stream->failure());
  }
  if (kind != ContainerKind::none) return container(kind, whole, {name + "!", place.depth + 1});
  if (visitor.visit) visitor.visit({name, whole});
}

void Walk::container(ContainerKind kind, Bytes bytes, const ContainerPlace& place) {
  switch (kind) {
    case ContainerKind::none:
      return note(place, {}, 0, "is not a container that is known");
    case ContainerKind::ar:
      return ar(bytes, place);
    case ContainerKind::zip:
      if (is_empty_zip(bytes)) return;
      return stream(Stream::Format::zip, bytes, place);
    case ContainerKind::tar:
      return stream(Stream::Format::tar, bytes, place);
    case ContainerKind::packed:
      return stream(Stream::Format::packed, bytes, place);
  }
}

void Walk::ar(Bytes bytes, const ContainerPlace& place) {
  if (text_of(bytes).starts_with(image::kThinArchiveMagic))
    return note(place, {}, 0, "is a thin archive: its members are files of their own, which can be named");
  const auto opened = ArchiveReader::open(bytes);
  if (!opened) return note(place, {}, opened.error().offset, describe(opened.error().code));
  ArchiveReader reader = *opened;
  for (;;) {
    const auto found = reader.next();
    if (!found && found.error().code == Errc::not_found) return progress(place, bytes.size());
    if (!count_member(place)) return;
    if (!found) {
      note(place, reader.name(), found.error().offset, describe(found.error().code));
      continue;
    }
    progress(place, found->offset);
    const Candidate candidate{found->name, found->size, found->offset};
    if (wanted(place, candidate)) member(place, candidate, found->bytes);
  }
}

void Walk::stream(Stream::Format format, Bytes bytes, const ContainerPlace& place) {
  const bool zip = format == Stream::Format::zip;
  MemberQueue* const queue = place.depth == 0 && zip ? visitor.queue : nullptr;
  Buffer buffer(visitor.member_memory);
  for (const bool large : {true, false}) {  // with a queue
    if (large && queue == nullptr) continue;
    Stream stream(format, bytes, visitor.passed);
    bool damage_told = false;
    for (std::size_t index = 0;; ++index) {
      Stream::Step step = stream.next_entry();
      // libarchive finds nothing behind an end record that lies.
      if (zip && index == 0 && step == Stream::Step::end) step = Stream::Step::failed;
      const bool entry = step == Stream::Step::entry;
      if (step == Stream::Step::end) break;
      if (queue != nullptr) {
        if ((large && !entry) || index > limits.members) break;
        if ((large && stream.size() < kLarge) || !queue->take(index)) {
          if (step == Stream::Step::failed) return;
          continue;
        }
        members_ = index;
      }
      progress(place, stream.done());
      if (!count_member(place) || !budget.spend(kHeaderBytes)) return;
      if (step == Stream::Step::damaged && !damage_told)
        note(place, {}, stream.offset(), "is damaged (" + stream.failure() + ")");
      damage_told = step == Stream::Step::damaged;
      if (entry && !stream_entry(stream, {stream.name(), stream.size(), stream.offset()}, buffer, place))
        return;
      if (step != Stream::Step::failed) continue;
      if (!zip) return note(place, {}, stream.offset(), "cannot be read further (" + stream.failure() + ")");
      // Without a directory, or with one that lies, it is read on as far as headers follow.
      note(place, {}, stream.offset(),
           "has no directory that leads on: read from here on, as far as that goes");
      this->stream(Stream::Format::cut_zip, bytes.subspan(static_cast<std::size_t>(stream.offset())), place);
      return;
    }
    progress(place, stream.done());
  }
}

/// False: nothing follows.
bool Walk::stream_entry(Stream& stream, Candidate member, Buffer& buffer, const ContainerPlace& place) {
  std::string_view inner = place.prefix.empty() ? std::string_view(path) : place.prefix;
  if (stream.is_raw()) {  // one file: of the stream's name
    if (inner.ends_with('!')) inner.remove_suffix(1);
    inner = unpacked_name(core::basename_of(inner.substr(inner.rfind('!') + 1)));
    member.name = inner;
    // Else the entry is these bytes once more.
    if (!stream.compressed())
      return note(place, inner, 0, "begins like a compressed stream, and is none"), false;
  } else if (place.depth == 0 && visitor.entry) {
    visitor.entry(member.name, stream.is_folder());
  }
  const auto skip = [&] { return stream.skip_rest(budget), true; };
  if (!stream.is_raw() && (!stream.is_file() || !wanted(place, member))) return skip();
  if (stream.is_encrypted()) {
    note(place, member.name, member.offset, "is encrypted");
    return skip();
  }
  buffer.clear();
  const Bytes whole = stream.in_place(budget);
  if (!whole.empty() && !stream.proves())
    this->member(place, member, whole);
  else
    this->member(place, member, &stream, buffer, whole);
  return stopped() || skip();
}

}  // namespace kshim::input
