// SPDX-License-Identifier: Apache-2.0
// `bypass` records: what went past the shim, in words.
#include <gtest/gtest.h>

#include "analyzer/verbs/driver_witness.h"
#include "analyzer/verbs/failed_start.h"
#include "tests/support/command_names.h"

namespace {

using namespace kshim::test;

Report report_with(std::vector<BypassRecord> bypasses) {
  Report report;
  report.process.pid = 7;
  report.process.exe = "/bin/host";
  report.process.cwd = "/home/me";
  report.bypasses = std::move(bypasses);
  return report;
}

BypassRecord row(const char* path, const char* how) {
  BypassRecord out;
  out.path = path;
  out.how = how;
  return out;
}

TEST(Bypass, AProcessWithoutTheShim) {
  const Report report = report_with({row("/bin/host", "absent")});
  EXPECT_TRUE(is_without_shim(report));
  ASSERT_TRUE(blind_by_bypass(report).has_value());
  EXPECT_EQ(blind_by_bypass(report)->pid, 7);
  EXPECT_FALSE(is_without_shim(report_with({row("/b.so", "namespace")})));
}

TEST(Bypass, NoneIsNothing) { EXPECT_FALSE(blind_by_bypass(report_with({})).has_value()); }

TEST(Bypass, FilesAndHow) {
  const auto found = blind_by_bypass(report_with({row("lib/a.so", "deepbind"), row("/b.so", "namespace")}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->pid, 7);
  EXPECT_EQ(found->exe, "/bin/host");
  EXPECT_NE(found->reason.find("/home/me/lib/a.so asked of CUDA"), std::string::npos) << found->reason;
  EXPECT_NE(found->reason.find("; what /b.so asked"), std::string::npos) << found->reason;
  EXPECT_NE(found->reason.find("try `kshim run --audit`"), std::string::npos) << found->reason;
}

TEST(Bypass, ManyAreCounted) {
  std::vector<BypassRecord> rows(9, row("/a.so", "deepbind"));
  EXPECT_NE(blind_by_bypass(report_with(rows))->reason.find("and 6 more"), std::string::npos);
}

TEST(Bypass, DoesNotRecommendAuditIfItWasOn) {
  Report report = report_with({row("/a.so", "deepbind")});
  report.process.env["LD_AUDIT"] = "/x/libkshim-audit.so";
  EXPECT_EQ(blind_by_bypass(report)->reason.find("try"), std::string::npos);
}

TEST(Bypass, WaysOfALaterVersionAreLeftOut) {
  EXPECT_FALSE(blind_by_bypass(report_with({row("/a.so", "teleport")})).has_value());
}

}  // namespace
