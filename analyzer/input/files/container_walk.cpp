// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_walk.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/input/files/container_queue.h"

namespace kshim::scan {
namespace {

constexpr std::size_t kTellsKind = 512;  // a tar's magic is the farthest
constexpr std::size_t kTellsContent = 64;

std::string full_name(const Place& place, std::string_view name) { return place.prefix + std::string(name); }

Bytes front(Bytes bytes, std::size_t size) { return bytes.first(std::min(bytes.size(), size)); }

}  // namespace

void Walk::note(const Place& place, std::string_view name, std::uint64_t offset, std::string clause) const {
  if (visitor_.damaged) visitor_.damaged(full_name(place, name), offset, std::move(clause));
}

void Walk::progress(const Place& place, std::uint64_t done) const {
  if (place.depth == 0 && visitor_.progress) visitor_.progress(done);
}

bool Walk::count_member(const Place& place) {
  if (stopped()) return false;
  if (++members_ <= limits_.members) return true;
  stopped_ = true;
  note_too_many(place);
  return false;
}

void Walk::note_too_many(const Place& place) const {
  note(place, {}, 0, fmt::format("holds more than {} members: the rest is not read", limits_.members));
}

bool Walk::takes_whole(const Place& place) const noexcept {
  return place.depth != 0 || visitor_.queue == nullptr || visitor_.queue->take_whole();
}

bool Walk::asked(const Place& place, const Candidate& member) const {
  return !visitor_.wants || visitor_.wants(full_name(place, member.name), member.size);
}

bool Walk::wanted(const Place& place, const Candidate& member) const {
  if (member.size == 0 || (!is_container_name(member.name) && !asked(place, member))) return false;
  if (member.size == kUnknownSize || member.size <= limits_.member_bytes) return true;
  note(place, member.name, member.offset,
       fmt::format("has {} bytes; members of more than {} are not read", member.size, limits_.member_bytes));
  return false;
}

/// Into the buffer, until it holds `until` bytes or the member ends. False: a note says why not.
bool Walk::pull(const Place& place, const Candidate& member, Source& source, Buffer& buffer,
                std::size_t until) {
  const char* clause = nullptr;
  while (buffer.size() < until) {
    const Bytes block = source.next();
    if (block.empty()) break;
    if (block.size() > limits_.member_bytes - buffer.size()) {
      note(place, member.name, member.offset,
           fmt::format("inflates to more than {} bytes", limits_.member_bytes));
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

void Walk::member(const Place& place, const Candidate& member, Bytes bytes) {
  MemorySource nothing_left({}, {});
  Buffer unused(memory());
  if (bytes.empty()) return;
  if (budget_.spend(bytes.size())) return this->member(place, member, nothing_left, unused, bytes);
  note(place, member.name, member.offset, "is beyond the limit of what is read of one container");
}

void Walk::member(const Place& place, const Candidate& member, Source& source, Buffer& buffer, Bytes whole) {
  buffer.clear();
  if (whole.empty() && !pull(place, member, source, buffer, kTellsKind)) return;
  const Bytes head = whole.empty() ? buffer.bytes() : whole;
  if (head.empty()) return;
  const ContainerKind kind = container_kind(front(head, kTellsKind), member.name);
  if (kind != ContainerKind::none) return nested(place, member, kind, source, buffer, whole);
  if (is_container_name(member.name) && !asked(place, member)) return;
  const std::string name = full_name(place, member.name);
  if (visitor_.wants_content && !visitor_.wants_content(name, front(head, kTellsContent))) return;
  if (whole.empty()) {
    if (!pull(place, member, source, buffer, SIZE_MAX)) return;
    whole = buffer.bytes();
  } else {
    while (!source.next().empty()) {
    }
    if (!source.failure().empty()) return note(place, member.name, member.offset, source.failure());
  }
  if (visitor_.visit) visitor_.visit({name, whole});
}

void Walk::nested(const Place& place, const Candidate& member, ContainerKind kind, Source& source,
                  Buffer& buffer, Bytes whole) {
  if (place.depth >= limits_.depth)
    return note(place, member.name, member.offset,
                fmt::format("lies in more than {} containers: not opened", limits_.depth));
  const Place inner{full_name(place, member.name) + "!", place.depth + 1};
  if (!whole.empty()) return container(kind, whole, inner);
  if (kind != ContainerKind::tar) {
    if (pull(place, member, source, buffer, SIZE_MAX)) container(kind, buffer.bytes(), inner);
    return;
  }
  ResumedSource resumed(buffer.bytes(), source);
  walk_stream(*this, Stream::Format::tar, resumed, {}, inner);
  if (!source.failure().empty()) note(place, member.name, member.offset, source.failure());
}

void Walk::container(ContainerKind kind, Bytes bytes, const Place& place) {
  switch (kind) {
    case ContainerKind::none:
      return note(place, {}, 0, "is not a container that is known");
    case ContainerKind::ar:
    case ContainerKind::thin_ar:
      return walk_ar(*this, bytes, place);
    case ContainerKind::zip:
      return walk_zip(*this, bytes, place);
    case ContainerKind::tar: {
      MemorySource source({}, bytes, visitor_.passed);
      return walk_stream(*this, Stream::Format::tar, source, bytes, place);
    }
  }
}

}  // namespace kshim::scan
