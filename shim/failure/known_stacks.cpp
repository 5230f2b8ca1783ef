// SPDX-License-Identifier: Apache-2.0
#include "failure/known_stacks.h"

#include <algorithm>
#include <cstddef>

#include "kshim/base/hash.h"
#include "process/python/frames.h"
#include "process/stack/native.h"

namespace kshim::shim {
namespace {

constexpr std::size_t kWords = 4;  // of a frame at most
constexpr std::size_t kMaxFrames = std::max(NativeStack::kMaxFrames, PythonStack::kMaxFrames);

/// What each text hashes to, and the numbers; hashed once more together.
class Digest {
 public:
  void add(std::uint64_t word) noexcept { words_[count_++] = word; }
  /// null and an empty text are written differently.
  void add(std::string_view text) noexcept {
    add(text.data() == nullptr ? std::uint64_t{0} : content_hash(bytes_of(text)));
  }
  std::uint64_t value() const noexcept {
    if (count_ == 0) return 0;
    const std::uint64_t hash = content_hash(std::as_bytes(std::span(words_, count_)));
    return hash == 0 ? 1 : hash;
  }

 private:
  std::uint64_t words_[kMaxFrames * kWords];
  std::size_t count_ = 0;
};

}  // namespace

std::uint64_t identity_of(std::span<const report::FrameRow> rows) noexcept {
  Digest digest;
  if (rows.size() > kMaxFrames) return 0;
  for (const report::FrameRow& row : rows) {
    digest.add(row.object);
    digest.add(row.build_id);
    digest.add(row.offset);
    digest.add(row.symbol);
  }
  return digest.value();
}

std::uint64_t identity_of(std::span<const report::PythonRow> rows) noexcept {
  Digest digest;
  if (rows.size() > kMaxFrames) return 0;
  for (const report::PythonRow& row : rows) {
    digest.add(row.file);
    digest.add(row.line);
    digest.add(row.function);
  }
  return digest.value();
}

std::optional<std::uint64_t> KnownStacks::find(std::uint64_t identity) const noexcept {
  if (identity == 0) return std::nullopt;
  for (std::size_t i = 0; i < count_; ++i)
    if (identities_[i] == identity) return i + 1;
  return std::nullopt;
}

std::uint64_t* KnownStacks::add(std::uint64_t identity, std::uint64_t failure) noexcept {
  if (failure == 0 || failure > kMax) return nullptr;
  identities_[failure - 1] = identity;
  count_ = std::max(count_, static_cast<std::size_t>(failure));
  return &identities_[failure - 1];
}

void KnownStacks::clear() noexcept {
  std::fill_n(identities_, count_, std::uint64_t{0});
  count_ = 0;
}

}  // namespace kshim::shim
