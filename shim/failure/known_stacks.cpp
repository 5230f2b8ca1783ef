// SPDX-License-Identifier: Apache-2.0
#include "failure/known_stacks.h"

#include <algorithm>
#include <cstddef>

#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

std::uint64_t add(std::uint64_t hash, std::uint64_t number) noexcept {
  hash = (hash ^ number) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29U);
}
/// null and an empty text are written differently.
std::uint64_t add(std::uint64_t hash, std::string_view text) noexcept {
  return add(hash, text.data() == nullptr ? std::uint64_t{0} : content_hash(bytes_of(text)));
}

}  // namespace

std::uint64_t identity_of(std::span<const report::FrameRow> rows) noexcept {
  std::uint64_t hash = rows.empty() ? 0 : kHashSeed;
  for (const report::FrameRow& row : rows)
    hash = add(add(add(add(hash, row.object), row.build_id), row.offset), row.symbol);
  return hash;
}

std::uint64_t identity_of(std::span<const report::PythonRow> rows) noexcept {
  std::uint64_t hash = rows.empty() ? 0 : kHashSeed;
  for (const report::PythonRow& row : rows) hash = add(add(add(hash, row.file), row.line), row.function);
  return hash;
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
