// SPDX-License-Identifier: Apache-2.0
// An explanation on one screen: what it means, what is behind it, what to do, what to run to know more.
#include "analyzer/core/text.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/explain.h"

namespace kshim::explain {
namespace {

std::string names_of(const Meaning& meaning) {
  if (meaning.driver_name.empty()) return meaning.runtime_name;
  if (meaning.runtime_name.empty()) return meaning.driver_name;
  return meaning.runtime_name + ", " + meaning.driver_name;
}

class ExplanationWriter {
 public:
  ExplanationWriter(const Explanation& explanation, Document& document)
      : explanation_(explanation), doc_(document) {}

  void write() {
    head();
    if (!explanation_.recognized) not_recognized();
    facts();
    write_findings(explanation_.findings, doc_.brief() ? Detail::full : Detail::everything, doc_);
    also();
    next();
    std::vector<Note> notes;
    for (const std::string& note : explanation_.notes) notes.push_back({note});
    doc_.notes(notes);
  }

 private:
  void head() {
    for (const Meaning& meaning : explanation_.meanings) {
      doc_.say(Tone::strong, fmt::format("{}:", meaning.code), meaning.message, Tone::strong);
      doc_.paragraph({{names_of(meaning)}}, 2);
      if (!meaning.note.empty()) doc_.paragraph({{meaning.note}}, 2);
    }
    if (explanation_.asked != Asked::log || explanation_.line == 0) return;
    doc_.gap();
    doc_.facts({{"line", {{fmt::format("{} of {}", explanation_.line, explanation_.subject)}}},
                {"says", {{explanation_.quote}}}});
  }

  void not_recognized() {
    doc_.say(Tone::warning, "not recognized:",
             explanation_.asked == Asked::log
                 ? fmt::format("kshim found no CUDA failure that it knows in {}", explanation_.subject)
                 : fmt::format("kshim knows no CUDA error `{}`", explanation_.subject));
    if (!explanation_.nearest.empty())
      doc_.paragraph({{fmt::format("Names that are like it: {}.", join(explanation_.nearest, ", "))}}, 2);
    doc_.paragraph({{explanation_.asked == Asked::log
                         ? "If the program did fail, `kshim run -- PROGRAM` records its CUDA calls."
                         : "Paste the whole message, or give the log with --log FILE; `kshim run -- PROGRAM` "
                           "records what really fails."}},
                   2);
  }

  void facts() {
    std::vector<Fact> facts;
    for (const std::string& fact : explanation_.facts)
      facts.push_back({facts.empty() ? "read" : "", {{fact}}});
    doc_.gap();
    doc_.facts(std::move(facts));
  }

  void also() {
    if (explanation_.also.empty()) return;
    doc_.heading(2, {{"Other possible causes"}});
    std::vector<Line> items;
    for (const Possibility& also : explanation_.also)
      items.push_back({{fmt::format("{}: {}", row_of(also.cause).name, also.when)}});
    doc_.list(std::move(items));
  }

  void next() {
    if (explanation_.next.empty()) return;
    doc_.heading(2, {{"To confirm"}});
    for (const NextStep& step : explanation_.next) {
      doc_.commands({step.command});
      doc_.paragraph({{as_sentence(step.why)}}, 6);
    }
  }

  const Explanation& explanation_;
  Document& doc_;
};

}  // namespace

std::string render_page(const Explanation& explanation, Format format, RenderOptions options) {
  options.whole_commands = explanation.windows;
  return write_document(format, "kshim explain", options, {},
                        [&](Document& document) { ExplanationWriter(explanation, document).write(); });
}

KSHIM_JSON(Meaning, code, driver_name, runtime_name, message, note)
KSHIM_JSON(NextStep, command, why)

std::string render_json(const Explanation& from) {
  Json out = {{"schema", "kshim-explain/1"}, {"findings", json_of(from.findings)}};
  out["asked"] = {{"as", to_name(from.asked)}, {"subject", from.subject}};
  out["recognised"] = from.recognized;
  out["meanings"] = json_of(from.meanings);
  out["line"] = from.line == 0 ? Json(nullptr) : Json(from.line);
  out["quote"] = json_of(from.quote);
  out["also"] = json_list(from.also, [](const Possibility& also) {
    return Json{{"cause", row_of(also.cause).name}, {"when", also.when}};
  });
  KSHIM_JSON_FIELDS(next, facts, notes, nearest)
  add_knowledge(out);
  return dumped(out);
}

}  // namespace kshim::explain
