// SPDX-License-Identifier: Apache-2.0
// Holds the simulator to what real cards answered: answers.tsv has a row a call, this file the call. Each
// runs in a process of its own, so that no call sees what another one left. A row that the simulator answers
// differently says what it answers and why; when it no longer does, the row is wrong, too.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cases.h"

namespace kshim::sim::ledger {
namespace {

std::vector<std::vector<std::string>> rows_of(const char* name) {
  std::ifstream file(std::string(KSHIM_LEDGER_FOLDER) + "/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> columns;
    std::istringstream in(line);
    for (std::string column; std::getline(in, column, '\t');) columns.push_back(column);
    rows.push_back(std::move(columns));
  }
  return rows;
}

/// What `call` says in a child of fork.
std::string in_a_process(const std::function<std::string()>& call) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = call();
    [[maybe_unused]] const auto written = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char bytes[256];
  for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
    said.append(bytes, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : "ended with status " + std::to_string(status);
}

enum Column : std::size_t { kCall, kArguments, kAnswer, kSource, kCard, kDriver, kHere, kBecause };

TEST(Ledger, EveryRowHoldsOrSaysWhyItDiffers) {
  const auto rows = rows_of("answers.tsv");
  ASSERT_GT(rows.size(), 200U);
  std::set<std::string> seen;
  int differs = 0;
  for (const auto& row : rows) {
    ASSERT_TRUE(row.size() == kHere || row.size() == kBecause + 1) << row.front();
    const std::string key = row[kCall] + "\t" + row[kArguments];
    EXPECT_TRUE(seen.insert(key).second) << "twice: " << key;
    const auto found = cases().find(key);
    ASSERT_NE(found, cases().end()) << "no case asks: " << key;
    const std::string here = in_a_process(found->second);
    if (row.size() == kHere) {
      EXPECT_EQ(here, row[kAnswer]) << key;
      continue;
    }
    ++differs;
    EXPECT_NE(row[kHere], row[kAnswer]) << key;
    EXPECT_EQ(here, row[kHere]) << key << ": the row says that it differs";
    EXPECT_FALSE(row[kBecause].empty()) << key;
  }
  for (const auto& [key, call] : cases()) EXPECT_TRUE(seen.count(key) != 0) << "no row: " << key;
  RecordProperty("rows", static_cast<int>(rows.size()));
  RecordProperty("differ", differs);
}

// The attributes of four cards, in one process: devices are told apart by their names.
TEST(Ledger, AttributesOfCards) {
  const auto rows = rows_of("attributes.tsv");
  ASSERT_GT(rows.size(), 100U);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 2U + kCards) << row.front();
    const auto attribute = static_cast<CUdevice_attribute>(std::stoi(row[0]));
    bool same = true;
    std::string here;
    for (int card = 0; card < kCards; ++card) {
      int value = 0;
      ASSERT_EQ(cuDeviceGetAttribute(&value, attribute, card == 0 ? 0 : card + 1), CUDA_SUCCESS) << row[1];
      here += " " + std::to_string(value);
      if (std::to_string(value) != row[2U + static_cast<std::size_t>(card)]) same = false;
    }
    const bool said = row.size() > 2U + kCards && !row.back().empty();
    EXPECT_EQ(same, !said) << row[1]
                           << (same ? " is as on the cards, and the row says it is not" : " is here:")
                           << here;
  }
}

}  // namespace
}  // namespace kshim::sim::ledger
