// SPDX-License-Identifier: Apache-2.0
#include "kshim/base/hash.h"

#include <gtest/gtest.h>

namespace kshim {
namespace {

// Test vectors of FNV-1a 64 from its authors' page (isthe.com/chongo/tech/comp/fnv).
TEST(ContentHash, IsFnv1a) {
  EXPECT_EQ(content_hash(bytes_of("")), 0xcbf29ce484222325ULL);
  EXPECT_EQ(content_hash(bytes_of("a")), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(content_hash(bytes_of("foobar")), 0x85944171f73967e8ULL);
}

TEST(ContentHash, ContinuesFromASeed) {
  EXPECT_EQ(content_hash(bytes_of("bar"), content_hash(bytes_of("foo"))), content_hash(bytes_of("foobar")));
}

}  // namespace
}  // namespace kshim
