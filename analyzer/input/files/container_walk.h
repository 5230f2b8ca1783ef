// SPDX-License-Identifier: Apache-2.0
// What the walks of the different containers share: limits, names, and what becomes of one member.
#pragma once
#include <mutex>

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/container_buffer.h"
#include "analyzer/input/files/container_stream.h"

namespace kshim::input {

/// Shared by calls of each_member() on the same bytes: each visits what no other has taken, large members
/// first, so that all end at about the same time. Anything but a zip is visited by the first thread that
/// comes.
class MemberQueue {
 public:
  bool take(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return taken_.insert(index).second;
  }
  bool take_whole() noexcept { return !whole_.exchange(true); }

 private:
  std::mutex mutex_;
  std::set<std::size_t> taken_;
  std::atomic<bool> whole_{false};
};

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
  bool stopped() const noexcept { return stopped_ || budget.exhausted(); }
  void note(const ContainerPlace& place, std::string_view name, std::uint64_t offset,
            std::string clause) const;
  void progress(const ContainerPlace& place, std::uint64_t done);
  /// Whether the member needs to be looked at: by name and size.
  bool wanted(const ContainerPlace& place, const Candidate& member) const;
  /// A member that lies in memory.
  void member(const ContainerPlace& place, const Candidate& member, Bytes bytes);
  const ContainerLimits& limits;
  const ContainerVisitor& visitor;
  const std::string path;
  ByteBudget own_budget;  ///< where the visitor brings none
  ByteBudget& budget;

 private:
  bool asked(const ContainerPlace& place, const Candidate& member) const;
  void stream(Stream::Format format, Bytes bytes, const ContainerPlace& place);
  bool stream_entry(Stream& stream, Candidate member, Buffer& buffer, const ContainerPlace& place);
  bool pull(const ContainerPlace& place, const Candidate& member, Stream& stream, Buffer& buffer,
            std::size_t until);
  void member(const ContainerPlace& place, const Candidate& member, Stream* stream, Buffer& buffer,
              Bytes whole);
  void ar(Bytes bytes, const ContainerPlace& place);

  std::uint64_t members_ = 0;
  std::uint64_t done_ = 0;
  bool stopped_ = false;
};

}  // namespace kshim::input
