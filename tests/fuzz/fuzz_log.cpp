// SPDX-License-Identifier: Apache-2.0
// Logs and messages of kshim explain: whatever bytes they hold, the answer is bounded, harmless, and of its
// schema's shape.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "analyzer/input/log/log_text.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/explain.h"
#include "fuzz_target.h"

using namespace kshim;
using namespace kshim::render;
using namespace kshim::verbs;
using namespace kshim::input;
using namespace kshim::core;

namespace {

void check(const Explanation& explanation) {
  for (const Finding& finding : explanation.findings)
    fuzz::require(finding.confidence >= 0 && finding.confidence <= 1, "a confidence is one");
  const std::string text =
      rendered(explanation, Format::text,
               {.color = false, .unicode = true, .width = 80, .verbose = true, .full = true});
  for (const char letter : text)
    fuzz::require(letter == '\n' || static_cast<unsigned char>(letter) >= ' ',
                  "no control character reaches the terminal");
  const auto json = nlohmann::json::parse(rendered(explanation, Format::json, {}), nullptr, false);
  fuzz::require(!json.is_discarded() && json["schema"] == "kshim-explain/1", "JSON is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::istringstream in(input);
  try {
    check(explain_log(in, "log", {}, {}));
  } catch (const NotALog& refused) {
    fuzz::require(refused.what()[0] != '\0', "what is refused is told why");
  }
  ExplainRequest options;
  options.assume_cc = image::ComputeCapability{8, 9};
  options.assume_driver = image::Version{12, 4};
  check(explain_text(input, options));
  return 0;
}
