// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/redact.h"

namespace kshim::shim {
namespace {

std::vector<std::string> masked(const std::vector<std::string>& arguments) {
  ArgumentMask mask;
  std::vector<std::string> out;
  for (const std::string& argument : arguments) out.emplace_back(mask.next(argument).view());
  return out;
}
using Arguments = std::vector<std::string>;

TEST(Mask, HidesValuesOfOptionsThatNameASecret) {
  EXPECT_EQ(masked({"x", "--token", "abc", "y"}), (Arguments{"x", "--token", "***", "y"}));
  EXPECT_EQ(masked({"--token=abc"}), (Arguments{"--token=***"}));
  EXPECT_EQ(masked({"--hf-token", "abc"}), (Arguments{"--hf-token", "***"}));
  EXPECT_EQ(masked({"WANDB_API_KEY=abc"}), (Arguments{"WANDB_API_KEY=***"}));
  EXPECT_EQ(masked({"--DB-Password", "-x"}), (Arguments{"--DB-Password", "***"}));
  EXPECT_EQ(masked({"-H", "Authorization: Bearer abc"}), (Arguments{"-H", "Authorization: Bearer ***"}));
  EXPECT_EQ(masked({"--token", "--verbose"}), (Arguments{"--token", "--verbose"}))
      << "a flag without a value";
}

TEST(Mask, KeepsWhatOnlySoundsLikeASecret) {
  const Arguments plain{"--max-tokens",  "512",      "--tokenizer", "llama",
                        "--arch=sm_90a", "train.py", "tokens.txt"};
  EXPECT_EQ(masked(plain), plain);
}

TEST(Mask, HidesCredentialsInUrls) {
  EXPECT_EQ(masked({"https://me:secret@host/a"}), (Arguments{"https://***@host/a"}));
  EXPECT_EQ(masked({"--index=https://tok@host/a?b@c"}), (Arguments{"--index=https://***@host/a?b@c"}));
  EXPECT_EQ(masked({"a http://u:p@q@h b ftp://x/y@z"}), (Arguments{"a http://***@h b ftp://x/y@z"}));
  EXPECT_EQ(masked({"https://host/?token=abc"}), (Arguments{"https://host/?token=***"}));
}

TEST(Mask, ShortensLongPrograms) {
  const std::string program = "x=1\n" + std::string(500, 'y');
  EXPECT_EQ(masked({"python", "-c", program}), (Arguments{"python", "-c", "[504 bytes]"}));
  EXPECT_EQ(masked({"bash", "-lc", program}), (Arguments{"bash", "-lc", "[504 bytes]"}));
  EXPECT_EQ(masked({"python", "-c", "import torch"}), (Arguments{"python", "-c", "import torch"}));
}

TEST(Mask, KnowsTokensByTheirShape) {
  EXPECT_EQ(masked({"hf_abcdefghijklmnopqrstuvwxyz"}), (Arguments{"***"}));
  EXPECT_EQ(masked({"KEY=ghp_abcdefghijklmnopqrstuvwxyz"}), (Arguments{"KEY=***"}));
  EXPECT_EQ(masked({"hf_model", "sk-learn"}), (Arguments{"hf_model", "sk-learn"}));
  EXPECT_EQ(masked({"hf_models/checkpoints/llama-2-7b"}), (Arguments{"hf_models/checkpoints/llama-2-7b"}));
}

}  // namespace
}  // namespace kshim::shim
