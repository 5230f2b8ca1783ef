// SPDX-License-Identifier: Apache-2.0
#include "boot/handshake.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "boot/md2.h"
#include "device/product.h"

namespace kshim::sim {
namespace {

std::string hex(const Md2Digest& digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string md2(std::string_view text) {
  Md2 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hex(hash.finish());
}

// RFC 1319, A.5: the test suite.
TEST(Md2, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(md2(""), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(md2("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(md2("abc"), "da853b0d3f88d99b30283a69e6ded6bb");
  EXPECT_EQ(md2("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(md2("abcdefghijklmnopqrstuvwxyz"), "4e8ddff3650292ab5a4108c3aa47940b");
  EXPECT_EQ(md2("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST(Md2, DoesNotDependOnHowTheMessageIsCut) {
  const std::string_view text = "abcdefghijklmnopqrstuvwxyz";
  Md2 hash;
  hash.update(std::as_bytes(std::span(text.substr(0, 17))));
  hash.update(std::as_bytes(std::span(text.substr(17))));
  EXPECT_EQ(hex(hash.finish()), "4e8ddff3650292ab5a4108c3aa47940b");
}

// Two questions have one answer everywhere (docs/internals/simulator.md, "The handshake").
TEST(Handshake, AnswersTheFixedQuestions) {
  const auto zero = answer_handshake(13000, 1, {}, {});
  EXPECT_EQ(zero[0], 0x3341181C03CB675CU);
  EXPECT_EQ(zero[1], 0x8ED383AA1F4CD1E8U);
  const auto one = answer_handshake(13001, 1, {}, {});
  EXPECT_EQ(one[0], 0x1841181C03CB675CU);
  EXPECT_EQ(one[1], 0x8ED383AA1F4CD1E8U);
}

TEST(Handshake, EveryFieldCounts) {
  Device device;
  device.pci_bus = 1;
  const HandshakeProcess process{13000, 1, 2, &device, &process, nullptr};
  std::set<std::uint64_t> answers;
  const auto ask = [&](std::uint32_t version, std::uint64_t seconds, const HandshakeProcess& by,
                       const Device& on) {
    answers.insert(answer_handshake(version, seconds, by, {&on, 1})[0]);
  };
  ask(13002, 5, process, device);
  ask(13002, 5, process, device);
  EXPECT_EQ(answers.size(), 1U);
  ask(13002, 6, process, device);
  ask(13012, 5, process, device);
  HandshakeProcess other = process;
  other.pid = 9;
  ask(13002, 5, other, device);
  other = process;
  other.integrity_function = &device;
  ask(13002, 5, other, device);
  Device moved = device;
  moved.pci_bus = 2;
  ask(13002, 5, process, moved);
  EXPECT_EQ(answers.size(), 6U);
  answers.insert(answer_handshake(13002, 5, process, {})[0]);
  EXPECT_EQ(answers.size(), 7U);
}

}  // namespace
}  // namespace kshim::sim
