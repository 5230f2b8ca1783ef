// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include "analyzer/device_code/mapped_file.h"
#include "analyzer/input/files/container_walk.h"
#include "kshim/image/archive.h"

namespace kshim::scan {
namespace {

using image::ArchiveMember;
using image::ArchiveReader;

/// A thin archive's member is a file beside it, or a member of an archive beside it.
void thin_member(Walk& walk, const Place& place, const Candidate& candidate, const ArchiveMember& member) {
  const auto path = std::filesystem::path(walk.path()).parent_path() / std::string(member.name);
  // The kernel would stop at a NUL and open something else.
  if (member.name.find('\0') != std::string_view::npos)
    return walk.note(place, candidate.name, candidate.offset, "has a name that no file has");
  // Asked first: merely opening some devices does something.
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    return walk.note(place, candidate.name, candidate.offset, "is not a regular file with contents");
  const auto file = analysis::MappedFile::open(path);
  if (const auto* clause = std::get_if<std::string>(&file))
    return walk.note(place, candidate.name, candidate.offset, *clause);
  Bytes bytes = std::get<analysis::MappedFile>(file).bytes();
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
  if (bytes.size() > walk.limits().member_bytes)
    return walk.note(place, candidate.name, candidate.offset, "is larger than what is read of one member");
  walk.member(place, candidate, bytes);
}

}  // namespace

void walk_ar(Walk& walk, Bytes bytes, const Place& place) {
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

}  // namespace kshim::scan
