// SPDX-License-Identifier: Apache-2.0
// Files inside files: members of wheels, zips, conda packages, tarballs and ar archives, without unpacking
// anything to disk.
#pragma once

#include "analyzer/input/files/container_stream.h"

namespace kshim::input {

class MemberQueue;

/// tar: compressed in any way, or not. packed: a compressed stream; nothing tells whether a tar is in it.
enum class ContainerKind : std::uint8_t { none, ar, zip, tar, packed };

constexpr std::size_t kTarHeader = 512;

/// By the first bytes (of a tar its header) and the name, for what they do not tell: a tarball in a
/// compressed stream.
ContainerKind container_kind(Bytes first_bytes, std::string_view name) noexcept;

struct ContainerLimits {
  std::uint64_t member_bytes = 8ULL << 30;  ///< a larger member is a note, not read
  std::uint64_t total_bytes = 64ULL << 30;  ///< uncompressed, nested ones included: beyond lie bombs
  std::uint64_t members = 1'000'000;        ///< nested ones included
  unsigned depth = 4;                       ///< containers in containers
  /// Of total_bytes, what a container of a size may inflate to: a small one is not to take long. CUDA wheels
  /// inflate to 2 to 10 times their size.
  std::uint64_t of(std::uint64_t size) const noexcept {
    constexpr std::uint64_t kLeast = std::uint64_t{256} << 20;
    constexpr std::uint64_t kTimes = 100;
    return size > total_bytes / kTimes ? total_bytes : std::min(total_bytes, kLeast + size * kTimes);
  }
};

struct Member {
  std::string name;  ///< inside its container, containers in between included:
                     ///< "pkg-foo.tar.zst!lib/libfoo.so". Bytes as found: escapes, NULs, "..", anything
  Bytes bytes;       ///< valid during the visit only
};

struct ContainerVisitor {
  /// Whether a member of this name and (uncompressed) size is worth its decompression; kUnknownSize only in
  /// zips that lost their directory. Members with the names of containers (.whl, .tar.gz, .a ...) are looked
  /// into whatever it answers; empty members are not asked about.
  std::function<bool(std::string_view name, std::uint64_t size)> wants;
  /// Asked next, with up to kFirstBytes first bytes, if there is one: false ends the decompression there.
  std::function<bool(std::string_view name, Bytes first)> wants_content;
  std::function<void(const Member&)> visit;
  /// Every entry of the outermost tar, in order, folders and links and empty files too. May be empty.
  std::function<void(std::string_view name, bool folder)> entry;
  /// What could not be read: a member's name (may be empty), the byte offset of its header in its container
  /// (as uncompressed), and a clause.
  std::function<void(std::string_view member, std::uint64_t offset, std::string what)> damaged;
  /// Bytes of the container itself done by this call, for a progress bar. May be empty.
  std::function<void(std::uint64_t done)> progress;
  /// Compressed bytes that were read through: if they are a mapped file's, their pages may go. Not always the
  /// container's own (nested ones are inflated elsewhere), and what is stored may be read again. Must not
  /// throw. May be empty.
  std::function<void(Bytes passed)> passed;
  /// Shared by the threads that read this container. May be null.
  MemberQueue* queue = nullptr;
  /// In place of ContainerLimits::total_bytes: shared by containers that count as one. May be null.
  ByteBudget* budget = nullptr;
  /// A member that inflates to more goes to a file without a name. Containers in containers have so much
  /// each.
  std::uint64_t member_memory = 64U << 20;
};

/// The same for a tar, compressed or not, whatever it is called.
void each_tar_member(Bytes tar, const ContainerLimits& limits, const ContainerVisitor& visitor);

struct TarEntry {
  std::string_view name;
  std::string_view link;  ///< where a symbolic or hard link leads
  Bytes bytes;            ///< of a file, in place
};
/// Calls visit() for every entry of an uncompressed tar until it answers false; nothing is read but headers.
void each_tar_entry(Bytes tar, const std::function<bool(const TarEntry&)>& visit);

/// What a compressed stream holds, block by block, until `take` answers false; "" or a clause that says why
/// it ended early. Not more than `most` bytes.
std::string inflate(Bytes packed, std::uint64_t most, const std::function<bool(Bytes)>& take);
/// Whether the bytes begin like a stream that inflate() knows.
bool is_compressed(Bytes first_bytes) noexcept;

/// Visits every wanted member, those of nested containers too; in order, but with a queue. `name` is the
/// container's. Never throws for what the bytes hold; what the visitor throws passes through.
void each_member(Bytes container, const std::string& name, const ContainerLimits& limits,
                 const ContainerVisitor& visitor);
}  // namespace kshim::input
