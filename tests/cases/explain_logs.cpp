// SPDX-License-Identifier: Apache-2.0
// `kshim explain --format json --log -` for many logs in one process, which compiles the rules once. Each log
// ends with a line that is the byte 0x1e, and so does each answer.
#include <iostream>
#include <sstream>
#include <string>

#include "analyzer/data/knowledge_file.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/explain.h"

int main() {
  using namespace kshim;
  using namespace kshim::render;
  using namespace kshim::verbs;
  using namespace kshim::data;
  load_knowledge("");
  std::string log;
  for (std::string line; std::getline(std::cin, line);) {
    if (line != "\x1e") {
      log += line + '\n';
      continue;
    }
    std::istringstream in(log);
    std::cout << rendered(explain_log(in, "stdin", {}, {}), Format::json, {}) << "\x1e\n";
    log.clear();
  }
  return 0;
}
