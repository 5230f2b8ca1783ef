// SPDX-License-Identifier: Apache-2.0
// What the walks of the different containers share: limits, names, and what becomes of one member.
#pragma once
#include <mutex>

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/container_buffer.h"
#include "analyzer/input/files/container_stream.h"

namespace kshim::input {

/// Where a container stands.
struct ContainerPlace {
  std::string prefix;  // of its members' names: "a.whl!b.tar!", empty for the outermost
  unsigned depth = 0;
};

/// A member as its container describes it.
struct Candidate {
  std::string_view name;
  std::uint64_t size = kUnknownSize;
  std::uint64_t offset = 0;  // of its header
};

/// Whether a name alone is reason enough to look for a container inside.
bool is_container_name(std::string_view name) noexcept;

class Walk {
 public:
  Walk(const ContainerLimits& all_limits, const ContainerVisitor& its_visitor, std::string its_path,
       std::uint64_t most)
      : limits(all_limits),
        visitor(its_visitor),
        path(std::move(its_path)),
        own_budget(most),
        budget(visitor.budget != nullptr ? *visitor.budget : own_budget) {}

  void container(ContainerKind kind, Bytes bytes, const ContainerPlace& place);

  // For the walks:
  /// Every member, wanted or not. False: the walk ends here.
  bool count_member(const ContainerPlace& place);
  void note_too_many(const ContainerPlace& place) const;
  /// Whether a container that cannot be shared is this thread's.
  bool takes_whole(const ContainerPlace& place) const noexcept;
  bool stopped() const noexcept { return stopped_ || budget.exhausted(); }
  void note(const ContainerPlace& place, std::string_view name, std::uint64_t offset,
            std::string clause) const;
  void progress(const ContainerPlace& place, std::uint64_t done) const;
  /// Whether the member needs to be looked at: by name and size.
  bool wanted(const ContainerPlace& place, const Candidate& member) const;
  /// A member that arrives in blocks. `buffer` is for its bytes; `whole`, where not empty, is the same bytes
  /// in memory already, unproved until the source was read to its end.
  void member(const ContainerPlace& place, const Candidate& member, Source& source, Buffer& buffer,
              Bytes whole = {});
  /// A member that lies in memory, with nothing to prove.
  void member(const ContainerPlace& place, const Candidate& member, Bytes bytes);
  const ContainerLimits& limits;
  const ContainerVisitor& visitor;
  const std::string path;
  ByteBudget own_budget;  ///< where the visitor brings none
  ByteBudget& budget;

 private:
  bool asked(const ContainerPlace& place, const Candidate& member) const;
  bool pull(const ContainerPlace& place, const Candidate& member, Source& source, Buffer& buffer,
            std::size_t until);
  void nested(const ContainerPlace& place, const Candidate& member, ContainerKind kind, Source& source,
              Buffer& buffer, Bytes whole);

  std::uint64_t members_ = 0;
  bool stopped_ = false;
};

/// A stream that is compressed as a whole: a tar, or one member.
void walk_packed(Walk& walk, std::string_view name, Source& input, const ContainerPlace& place);
/// What lies in other bytes from `from` on, without their saying so.
void walk_embedded(Walk& walk, Bytes bytes, std::uint64_t from, const ContainerPlace& place);
/// Whether a zip with a directory ends the bytes.
bool has_zip_directory(Bytes bytes) noexcept;
void walk_ar(Walk& walk, Bytes bytes, const ContainerPlace& place);
void walk_zip(Walk& walk, Bytes bytes, const ContainerPlace& place);
void list_tar(Bytes tar, const std::function<bool(const TarEntry&)>& visit);
/// `memory`: the archive's bytes where they are in memory, so that members need not be copied.
void walk_stream(Walk& walk, Stream::Format format, Source& input, Bytes memory, const ContainerPlace& place);

// One zip for several threads.

/// Shared by calls of each_member() on the same bytes: each visits what no other has taken, the largest
/// members first, so that all end at about the same time. Anything but a zip is visited by the first thread
/// that comes.
class MemberQueue {
 public:
  MemberQueue() = default;
  MemberQueue(const MemberQueue&) = delete;
  MemberQueue& operator=(const MemberQueue&) = delete;

 private:
  friend class Walk;
  friend class ZipWalk;
  struct Row {
    std::uint64_t compressed_size = 0;
    std::uint64_t directory_offset = 0;
  };
  void sort();
  std::optional<Row> take() noexcept;
  bool take_whole() noexcept { return !whole_.exchange(true); }

  std::once_flag listed_;
  std::vector<Row> rows_;  // not changed after listed_
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> read_{0};  // compressed bytes of members so far
  std::atomic<bool> whole_{false};
};

}  // namespace kshim::input
