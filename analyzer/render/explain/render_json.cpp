// SPDX-License-Identifier: Apache-2.0
// Schema kshim-explain/1: {schema, findings} of the contract, additions behind them.
#include "analyzer/render/json_finding.h"
#include "analyzer/verbs/explain.h"

namespace kshim::explain {

using analysis::Json;
using analysis::json_list;
using analysis::text_or_null;

std::string render_json(const Explanation& explanation) {
  Json out = {{"schema", "kshim-explain/1"}};
  out["findings"] =
      json_list(explanation.findings, [](const analysis::Finding& finding) { return to_json(finding); });
  out["asked"] = {{"as", to_name(explanation.asked)}, {"subject", explanation.subject}};
  out["recognised"] = explanation.recognised;
  out["meanings"] = json_list(explanation.meanings, [](const Meaning& meaning) {
    return Json{{"code", meaning.code},
                {"driver_name", text_or_null(meaning.driver_name)},
                {"runtime_name", text_or_null(meaning.runtime_name)},
                {"message", text_or_null(meaning.message)},
                {"note", text_or_null(meaning.note)}};
  });
  out["line"] = explanation.line == 0 ? Json(nullptr) : Json(explanation.line);
  out["quote"] = text_or_null(explanation.quote);
  out["also"] = json_list(explanation.also, [](const Possibility& also) {
    return Json{{"cause", analysis::row_of(also.cause).name}, {"when", also.when}};
  });
  out["next"] = json_list(explanation.next, [](const NextStep& step) {
    return Json{{"command", step.command}, {"why", step.why}};
  });
  out["facts"] = explanation.facts;
  out["notes"] = explanation.notes;
  out["nearest"] = explanation.nearest;
  analysis::add_knowledge(out);
  return analysis::dumped(out);
}

}  // namespace kshim::explain
