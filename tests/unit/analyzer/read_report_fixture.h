// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>

#include "analyzer/input/report/fields.h"
#include "analyzer/input/report/report_reader.h"
#include "report_text.h"
#include "tests/support/command_names.h"

namespace kshim::test {

class ReadReport : public ::testing::Test {
 protected:
  Report read(std::string_view bytes) {
    auto got = read_report(folder_.write("r.jsonl", bytes));
    if (const auto* why = std::get_if<std::string>(&got)) {
      ADD_FAILURE() << "not read: " << *why;
      return {};
    }
    return std::get<Report>(std::move(got));
  }
  std::string refusal(std::string_view bytes) {
    auto got = read_report(folder_.write("r.jsonl", bytes));
    const auto* why = std::get_if<std::string>(&got);
    return why != nullptr ? *why : "it was read";
  }
  /// "LINE: TEXT\n" each; without a line, the text alone.
  static std::string notes_of(const Report& report) {
    std::string out;
    for (const ReportNote& note : report.notes)
      out += (note.line == 0 ? std::string() : std::to_string(note.line) + ": ") + note.text + '\n';
    return out;
  }
  TemporaryFolder folder_;
};

}  // namespace kshim::test
