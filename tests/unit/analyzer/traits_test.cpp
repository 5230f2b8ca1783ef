// SPDX-License-Identifier: Apache-2.0
// Causes and codes against each other: a row that leaves a trait out is found here.
#include <gtest/gtest.h>

#include <set>

#include "analyzer/core/finding.h"
#include "analyzer/data/tables.h"
#include "kshim/base/cuda_error.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

// What a code says of its cause has to be what the code's own row says of it.
TEST(Traits, ACodeAndItsCauseAgree) {
  for (const CodeCauseRow& row : code_causes()) {
    if (is_image_cause(row.cause)) {
      EXPECT_TRUE(code_has(row.code, code_trait::about_code)) << row.code;
    }
    if (row.cause == Cause::launch_resources) {
      EXPECT_TRUE(code_has(row.code, code_trait::limit)) << row.code;
    }
    if (row.cause == Cause::context_mismatch) {
      EXPECT_TRUE(code_has(row.code, code_trait::handle)) << row.code;
    }
    if (row.cause == Cause::device_fault) {
      EXPECT_TRUE(code_has(row.code, code_trait::sticky)) << row.code;
    }
    if (code_has(row.code, code_trait::limit)) {
      EXPECT_EQ(row.cause, Cause::launch_resources) << row.code;
    }
  }
}

TEST(Traits, AmbiguousCodesAreAboutCode) {
  for (int code = 0; code < 1000; ++code) {
    const bool not_found = code_has(code, code_trait::not_found);
    if (code_has(code, code_trait::ambiguous) || not_found) {
      EXPECT_TRUE(code_has(code, code_trait::about_code)) << code;
    }
    if (code_has(code, code_trait::telling_number) || code_has(code, code_trait::about_code)) {
      EXPECT_TRUE(code_has(code, code_trait::says_cuda) || code == 300) << code;
    }
  }
}

// One trait follows from another: a cause that has the one and lacks the other was not thought through.
TEST(Traits, OfCausesImplyOneAnother) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Cause::unknown); ++i) {
    const Cause cause = static_cast<Cause>(i);
    const auto name = row_of(cause).name;
    const auto has = [cause](unsigned trait) { return has_trait(cause, trait); };
    if (has(cause_trait::needs_arch)) {
      EXPECT_TRUE(has(cause_trait::image)) << name;
    }
    if (has(cause_trait::code_missing)) {
      EXPECT_TRUE(has(cause_trait::needs_arch)) << name;
    }
    if (has(cause_trait::arch_list)) {
      EXPECT_TRUE(has(cause_trait::needs_arch)) << name;
    }
    if (has(cause_trait::switched)) {
      EXPECT_TRUE(has(cause_trait::not_the_driver)) << name;
    }
    if (has(cause_trait::image) && name.find("driver") == std::string_view::npos &&
        cause != Cause::jit_compiler_missing && cause != Cause::latent_gap) {
      EXPECT_TRUE(has(cause_trait::not_the_driver)) << name << ": does another driver end it?";
    }
  }
}

}  // namespace
}  // namespace kshim::test
