// SPDX-License-Identifier: Apache-2.0
// What `kshim run` says in the end, of reports that are there: the same analysis and the same pages, told
// what a run would have found out about the program. as_run FORMAT EXIT_STATUS [-m PROGRAM NAME NEEDED_BY
// FOLDER] REPORT...
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "analyzer/render/render.h"
#include "analyzer/verbs/analysis.h"
#include "tests/support/command_names.h"

int main(int argc, char** argv) {
  using namespace kshim::test;
  const auto format = argc > 2 ? parse_format(argv[1]) : std::nullopt;
  if (!format) return 2;
  RunFacts seen;
  seen.ending.status = std::atoi(argv[2]);
  int next = 3;
  if (argc > next + 4 && std::strcmp(argv[next], "-m") == 0) {
    seen.missing.push_back({argv[next + 1], argv[next + 2], argv[next + 3], argv[next + 4], true});
    next += 5;
  }
  const Analysis analysis = analyze(std::vector<std::filesystem::path>(argv + next, argv + argc), {}, seen);
  std::cout << rendered(analysis, *format,
                        {.color = false, .unicode = true, .width = 100, .verbose = false, .full = false});
  return worst(analysis) == Severity::error ? 1 : 0;
}
