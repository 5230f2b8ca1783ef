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

// FIPS 180-4's examples, and lengths around the end of a block against sha256sum.
TEST(Sha256, IsThatOfFips180) {
  const auto hash = [](std::string_view bytes) {
    const auto hex = sha256(bytes);
    return std::string(hex.data(), hex.size());
  };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::string chain;
  for (std::size_t size = 0; size < 200; ++size) chain = hash(std::string(size, 'x') + chain);
  EXPECT_EQ(chain, "68438abffc1e61f86f920581a8e33b5d5a120aacee74564920d7a5cd503afdd3");
}

// Every length around the end of a block, against Python's hmac: the chain of all of them.
TEST(Hmac, TakesEveryLength) {
  std::string chain;
  for (std::size_t size = 0; size < 200; ++size) chain = hmac(chain, std::string(size, 'x') + chain);
  EXPECT_EQ(chain, "59cd9e69ef827cf8a7b5d870494e31d3ad68b076279595bb81fb1eba2c9c2e9f");
}

}  // namespace
}  // namespace kshim::report
