// SPDX-License-Identifier: Apache-2.0
// The .gnu.hash table (glibc, do_lookup_x). Layout, in 32-bit words: bucket count; number of the first hashed
// symbol; count of 64-bit filter words; filter shift; the filter; the buckets; one chain word a symbol, whose
// bit 0 marks a chain's end. The table is read through `word(index, out)`, which returns false outside of it,
// so a damaged table ends a search.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kshim {

constexpr std::uint32_t gnu_hash(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char character : name) hash = hash * 33 + static_cast<unsigned char>(character);
  return hash;
}

class GnuHashTable {
 public:
  template <class Word>
  static bool open(const Word& word, GnuHashTable& out) noexcept {
    return word(0, out.bucket_count_) && word(1, out.first_) && word(2, out.filter_words_) &&
           word(3, out.shift_) && out.bucket_count_ != 0 && out.filter_words_ != 0;
  }
  /// Number of the first hashed symbol: undefined ones come before it.
  std::uint32_t first() const noexcept { return first_; }

  /// The symbol with that hash for which is(symbol) returns true; 0 if there is none.
  template <class Word, class Is>
  std::uint32_t find(const Word& word, std::uint32_t hash, const Is& is) const noexcept {
    const std::uint64_t filter = kHead + std::uint64_t{hash / 64 % filter_words_} * 2;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    if (!word(filter, low) || !word(filter + 1, high)) return 0;
    const std::uint64_t bits = std::uint64_t{high} << 32U | low;
    const std::uint64_t mask = 1ULL << (hash % 64) | 1ULL << ((hash >> (shift_ % 32)) % 64);
    if ((bits & mask) != mask) return 0;
    std::uint32_t symbol = 0;
    if (!word(buckets() + hash % bucket_count_, symbol) || symbol < first_) return 0;
    for (std::uint32_t chain = 0; (chain & 1U) == 0; ++symbol) {
      if (symbol == UINT32_MAX || !word(chains() + (symbol - first_), chain)) return 0;
      if ((chain | 1U) == (hash | 1U) && is(symbol)) return symbol;
    }
    return 0;
  }

  /// How many dynamic symbols there are: one more than the last of all chains. 0 when the table is damaged.
  template <class Word>
  std::uint32_t symbol_count(const Word& word) const noexcept {
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < bucket_count_; ++i) {
      std::uint32_t symbol = 0;
      if (!word(buckets() + i, symbol)) return 0;
      if (symbol > last) last = symbol;
    }
    if (last < first_) return first_;
    for (std::uint32_t chain = 0; (chain & 1U) == 0; ++last)
      if (last == UINT32_MAX || !word(chains() + (last - first_), chain)) return 0;
    return last;
  }

 private:
  static constexpr std::uint64_t kHead = 4;
  std::uint64_t buckets() const noexcept { return kHead + std::uint64_t{filter_words_} * 2; }
  std::uint64_t chains() const noexcept { return buckets() + bucket_count_; }

  std::uint32_t bucket_count_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t filter_words_ = 0;
  std::uint32_t shift_ = 0;
};

}  // namespace kshim
