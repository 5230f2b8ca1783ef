// SPDX-License-Identifier: Apache-2.0
#include "kshim/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kshim {
namespace {

// Test vectors of FNV-1a 64 from its authors' page (isthe.com/chongo/tech/comp/fnv).
TEST(KeyHash, IsFnv1a) {
  EXPECT_EQ(key_hash(bytes_of("")), 0xcbf29ce484222325ULL);
  EXPECT_EQ(key_hash(bytes_of("a")), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(key_hash(bytes_of("foobar")), 0x85944171f73967e8ULL);
}

TEST(KeyHash, ContinuesFromASeed) {
  EXPECT_EQ(key_hash(bytes_of("bar"), key_hash(bytes_of("foo"))), key_hash(bytes_of("foobar")));
}

// Reports of earlier versions are compared with files by later ones: these values stay.
TEST(ContentHash, StaysWhatItIs) {
  EXPECT_EQ(content_hash(bytes_of("")), 0x7795cc51e595a7acULL);
  EXPECT_EQ(content_hash(bytes_of("a")), 0x80ce9aef5e83f165ULL);
  EXPECT_EQ(content_hash(bytes_of("the quick brown fox jumps over the lazy dog, twice")),
            0x00f5885922f7a75dULL);
}

TEST(ContentHash, TellsEveryByteAndTheSize) {
  std::set<std::uint64_t> seen;
  std::string text(200, '\0');
  for (std::size_t size = 0; size <= text.size(); ++size) {
    EXPECT_TRUE(seen.insert(content_hash(bytes_of({text.data(), size}))).second) << size;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(1U << bit);
      EXPECT_TRUE(seen.insert(content_hash(bytes_of(changed))).second) << i << " " << bit;
      // The same bit again, a step further on in the same lane, must not take the first one back.
      if (i + 64 < text.size()) {
        changed[i + 64] = changed[i];
        EXPECT_TRUE(seen.insert(content_hash(bytes_of(changed))).second) << i << " " << bit;
      }
    }
  }
}

}  // namespace
}  // namespace kshim
