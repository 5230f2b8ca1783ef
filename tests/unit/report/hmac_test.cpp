// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/hmac.h"

#include <gtest/gtest.h>

#include <string>

namespace kshim::report {
namespace {

std::string hmac(const std::string& key, const std::string& text) {
  const auto hex = hmac_sha256(key, text);
  return {hex.data(), hex.size()};
}

// RFC 4231, cases 1, 2, 3, 6 and 7.
TEST(Hmac, IsThatOfRfc4231) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'),
           "This is a test using a larger than block-size key and a larger than block-size data. The key "
           "needs to be hashed before being used by the HMAC algorithm."),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

// Every length around the end of a block, against Python's hmac: the chain of all of them.
TEST(Hmac, TakesEveryLength) {
  std::string chain;
  for (std::size_t size = 0; size < 200; ++size) chain = hmac(chain, std::string(size, 'x') + chain);
  EXPECT_EQ(chain, "59cd9e69ef827cf8a7b5d870494e31d3ad68b076279595bb81fb1eba2c9c2e9f");
}

}  // namespace
}  // namespace kshim::report
