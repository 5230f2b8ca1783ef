// SPDX-License-Identifier: Apache-2.0
// An explanation on one screen: what it means, what is behind it, what to do, what to run to know more.
#include "analyzer/render/answer.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/render.h"

namespace kshim::render {
using core::Tone;
using verbs::Asked;

namespace {

struct ExplanationWriter {
  void write() {
    if (doc_.brief() && (!explanation_.findings.empty() || explanation_.other)) return answer();
    head();
    if (!explanation_.recognized) not_recognized();
    facts();
    write_findings(explanation_.findings, doc_);
    also();
    next();
    doc_.notes(core::mapped(explanation_.notes, [](const std::string& note) { return Note{note}; }));
  }

  // What a number or a name means is the answer to it, with what it stands for most often.
  void answer() {
    const bool log = explanation_.asked == Asked::log;
    for (const verbs::Meaning& meaning : explanation_.meanings)
      if (!log)
        doc_.say(Tone::strong, fmt::format("{}:", meaning.code),
                 fmt::format("{} ({})", meaning.message, names_of(meaning)));
    AnswerAt at;
    if (log)
      at = {.line = {explanation_.subject, explanation_.line},
            .quote = explanation_.quote,
            .part = explanation_.part};
    if (!explanation_.next.empty()) at.decide = explanation_.next.front().command;
    if (explanation_.other) {
      write_answer(outside_cuda(*explanation_.other), 1, at, doc_);
    } else {
      // Without a problem, a note is the answer.
      if (!explanation_.findings.empty() && std::ranges::none_of(explanation_.findings, core::is_problem))
        write_answer(explanation_.findings.front(), 1, at, doc_);
      write_answers(explanation_.findings, at, doc_);
      doc_.notes(core::mapped(explanation_.notes, [](const std::string& note) { return Note{note}; }));
    }
    const std::string word = core::shell_quote(explanation_.subject);
    const bool typed =
        !word.empty() && word.front() != core::kNoShellWord && explanation_.subject != verbs::kStandardInput;
    doc_.more("More:", log ? fmt::format("kshim explain --log {} -v", typed ? word : "FILE")
                           : fmt::format("kshim explain {} -v", typed ? word : "MESSAGE"));
  }

  static std::string names_of(const verbs::Meaning& meaning) {
    std::vector<std::string> names = {meaning.runtime_name, meaning.driver_name};
    std::erase(names, "");
    return core::join(names, ", ");
  }

  void head() {
    for (const verbs::Meaning& meaning : explanation_.meanings) {
      doc_.say(Tone::strong, fmt::format("{}:", meaning.code), meaning.message, Tone::strong);
      std::vector<std::string> names = {meaning.runtime_name, meaning.driver_name};
      std::erase(names, "");
      doc_.paragraph({{core::join(names, ", ")}}, 2);
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
                 ? fmt::format("kshim found no CUDA failure that it knows in {}{}", explanation_.subject,
                               explanation_.line == 0 ? "" : ", whose last error is above")
                 : fmt::format("kshim knows no CUDA error `{}`", explanation_.subject));
    if (!explanation_.nearest.empty())
      doc_.paragraph({{fmt::format("Names that are like it: {}.", core::join(explanation_.nearest, ", "))}},
                     2);
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
    doc_.list(core::mapped(explanation_.also, [](const verbs::Possibility& also) {
      return Line{{fmt::format("{}: {}", row_of(also.cause).name, also.when)}};
    }));
  }

  void next() {
    if (explanation_.next.empty()) return;
    doc_.heading(2, {{"To confirm"}});
    for (const advise::NextStep& step : explanation_.next) {
      doc_.commands({step.command});
      doc_.paragraph({{core::as_sentence(step.why)}}, 6);
    }
  }

  const verbs::Explanation& explanation_;
  Document& doc_;
};

}  // namespace

KSHIM_JSON(verbs::Meaning, code, driver_name, runtime_name, message, note)
KSHIM_JSON(advise::NextStep, command, why)

std::string rendered(const verbs::Explanation& from, Format format, RenderOptions options) {
  options.whole_commands = from.windows;
  if (format != Format::json)
    return write_document(format, "kshim explain", options, {}, [&](Document& document) {
      ExplanationWriter{from, document}.write();
    });
  Json out = {{"schema", "kshim-explain/1"}, {"findings", json_of(from.findings)}};
  out["asked"] = {{"as", to_name(from.asked)}, {"subject", from.subject}};
  out["recognised"] = from.recognized;
  out["meanings"] = json_of(from.meanings);
  out["line"] = from.line == 0 ? Json(nullptr) : Json(from.line);
  out["quote"] = json_of(from.quote);
  out["also"] = json_list(from.also, [](const verbs::Possibility& also) {
    return Json{{"cause", row_of(also.cause).name}, {"when", also.when}};
  });
  KSHIM_JSON_FIELDS(next, facts, notes, nearest)
  add_knowledge(out);
  return dumped(out);
}

}  // namespace kshim::render
