// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/verbs/analysis.h"
#include "report_text.h"
#include "tests/support/command_names.h"

namespace kshim::test {

constexpr const char* kSaxpy = "_Z5saxpyifPKfPf";

class Analyze : public ::testing::Test {
 protected:
  Analysis run(const ReportText& report) { return run_all({report}); }
  Analysis run_all(const std::vector<ReportText>& reports) {
    TemporaryFolder folder;
    for (std::size_t i = 0; i < reports.size(); ++i)
      folder.write(fmt::format("box.{}.jsonl", i), reports[i].text());
    return analyze({folder.path()}, options_, seen_);
  }
  /// A process on one GPU with one object and its module, whose kernel failed.
  static ReportText failing(std::string_view cc, const std::vector<std::string>& images, int code = 209,
                            std::string_view env = "", std::string_view driver = "13.0") {
    ReportText text;
    text.process(env)
        .driver(driver)
        .device(0, cc, "NVIDIA Test")
        .object(1, "/home/u/libfoo.so", images)
        .module(1, "1");
    return text.failure(1, "lookup", code, kSaxpy, R"("module":1,"object":1)").end();
  }
  AnalysisOptions options_;
  RunFacts seen_;
};

}  // namespace kshim::test
