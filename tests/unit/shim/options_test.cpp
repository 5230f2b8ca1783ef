// SPDX-License-Identifier: Apache-2.0
#include "guest/options.h"

#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::shim {
namespace {

struct Parsed {
  std::unique_ptr<OptionsStorage> storage = std::make_unique<OptionsStorage>();
  Options options;
};

Parsed parse(std::vector<const char*> environment) {
  Parsed parsed;
  environment.push_back(nullptr);
  parse_options(environment.data(), *parsed.storage, parsed.options);
  return parsed;
}

TEST(Options, DefaultsAreThoseOfTheTable) {
  const Parsed parsed = parse({"PATH=/bin", "KSHIM_LOG="});
  EXPECT_TRUE(parsed.options.enabled);
  EXPECT_FALSE(parsed.options.coverage || parsed.options.each_repeat);
  EXPECT_TRUE(parsed.options.native_stacks && parsed.options.python_stacks);
  EXPECT_EQ(parsed.options.log, LogLevel::warn);
  EXPECT_EQ(parsed.options.report, "kshim-report/%h.%p.jsonl");
  EXPECT_FALSE(parsed.options.report_given);
  EXPECT_EQ(parsed.options.run_id.data(), nullptr);
  EXPECT_TRUE(parsed.options.targets.empty());
  EXPECT_EQ(parsed.storage->complaint_count, 0U);
}

// shows: site-wide preload: root obeys its own file
TEST(Options, RootsOwnFileHasTheSameNames) {
  OptionsStorage storage;
  Options options;
  begin_settings(options);
  for (const std::string_view line : {"# a comment", " KSHIM_REPORT = /var/spool/kshim/%h.%p.jsonl", "",
                                      "KSHIM_MODE=0640", "KSHIM_LOG=loud", "OTHER=1", "KSHIM_ARGV=off"})
    parse_setting(line, storage, options);
  EXPECT_TRUE(options.own_settings);
  EXPECT_EQ(options.report, "/var/spool/kshim/%h.%p.jsonl");
  EXPECT_EQ(options.mode, 0640U);
  EXPECT_EQ(options.arguments, report::ArgumentDetail::off);
  EXPECT_EQ(storage.complaint_count, 1U);
  begin_settings(options);
  EXPECT_EQ(options.report, "kshim-report/%h.%p.jsonl");
}

TEST(Options, ReadsEachVariable) {
  const Parsed parsed =
      parse({"KSHIM_REPORT=/tmp/%r/%h%%.%p", "KSHIM_LOG=debug", "KSHIM_BACKTRACE= python ",
             "KSHIM_TARGET=8.6;sm_90a, compute_120", "KSHIM_COVERAGE=1", "KSHIM_DISABLE=1",
             "KSHIM_REPEATS=each", "KSHIM_ARGV=full", "KSHIM_MODE=0640", "KSHIM_MAX_BYTES=2M",
             "KSHIM_MAX_FILES=100", "KSHIM_RUN_ID=abc", "KSHIM_RUN_SOCKET=/tmp/s"});
  EXPECT_FALSE(parsed.options.enabled);
  EXPECT_TRUE(parsed.options.coverage);
  EXPECT_TRUE(parsed.options.each_repeat);
  EXPECT_FALSE(parsed.options.native_stacks);
  EXPECT_TRUE(parsed.options.python_stacks);
  EXPECT_EQ(parsed.options.log, LogLevel::debug);
  EXPECT_EQ(parsed.options.report, "/tmp/%r/%h%%.%p");
  EXPECT_TRUE(parsed.options.report_given);
  EXPECT_EQ(parsed.options.arguments, report::ArgumentDetail::full);
  EXPECT_EQ(parsed.options.mode, 0640U);
  EXPECT_EQ(parsed.options.max_bytes, 2U << 20U);
  EXPECT_EQ(parsed.options.max_files, 100U);
  EXPECT_EQ(parsed.options.run_id, "abc");
  EXPECT_EQ(parsed.options.run_socket, "/tmp/s");
  ASSERT_EQ(parsed.options.targets.size(), 3U);
  EXPECT_EQ(parsed.options.targets[0].cc.number(), 86U);
  EXPECT_EQ(parsed.options.targets[1].suffix, image::Suffix::a);
  EXPECT_EQ(parsed.options.targets[2].cc.number(), 120U);
  EXPECT_EQ(parsed.storage->complaint_count, 0U);
}

TEST(Options, BacktraceOffIsAlone) {
  const Parsed off = parse({"KSHIM_BACKTRACE=off"});
  EXPECT_FALSE(off.options.native_stacks || off.options.python_stacks);
  EXPECT_EQ(off.storage->complaint_count, 0U);
  EXPECT_EQ(parse({"KSHIM_BACKTRACE=off,native"}).storage->complaint_count, 1U);
}

class BadValue : public testing::TestWithParam<const char*> {};

TEST_P(BadValue, IsNamedAndTheDefaultHolds) {
  const Parsed parsed = parse({GetParam()});
  const std::string entry(GetParam());
  ASSERT_EQ(parsed.storage->complaint_count, 1U);
  EXPECT_EQ(parsed.storage->complaints[0].name, entry.substr(0, entry.find('=')));
  EXPECT_EQ(parsed.storage->complaints[0].value, entry.substr(entry.find('=') + 1));
  const Parsed plain = parse({});
  EXPECT_EQ(parsed.options.enabled, plain.options.enabled);
  EXPECT_EQ(parsed.options.coverage, plain.options.coverage);
  EXPECT_EQ(parsed.options.log, plain.options.log);
  EXPECT_EQ(parsed.options.report, plain.options.report);
  EXPECT_EQ(parsed.options.native_stacks, plain.options.native_stacks);
  EXPECT_EQ(parsed.options.python_stacks, plain.options.python_stacks);
  EXPECT_EQ(parsed.options.targets.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, BadValue,
                         testing::Values("KSHIM_LOG=loud", "KSHIM_ARGV=some", "KSHIM_MODE=0666",
                                         "KSHIM_MAX_BYTES=0", "KSHIM_MAX_BYTES=M", "KSHIM_MAX_FILES=-1",
                                         "KSHIM_LOG=WARN", "KSHIM_COVERAGE=yes", "KSHIM_DISABLE=2",
                                         "KSHIM_BACKTRACE=native,perl", "KSHIM_BACKTRACE=,",
                                         "KSHIM_TARGET=8.6;banana", "KSHIM_TARGET=sm_999",
                                         "KSHIM_TARGET=8.6;13.7", "KSHIM_REPORT=reports/", "KSHIM_REPORT=a%q",
                                         "KSHIM_REPORT=a%"),
                         [](const auto& value) {
                           std::string name;
                           for (const char c : std::string_view(value.param))
                             name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name + "_" + std::to_string(value.index);
                         });

}  // namespace
}  // namespace kshim::shim
