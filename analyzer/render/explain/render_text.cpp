// SPDX-License-Identifier: Apache-2.0
// An explanation on one screen: what it means, what is behind it, what to do, what to run to know more.
#include <fmt/core.h>

#include "analyzer/core/text.h"
#include "analyzer/render/each_string.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/page.h"
#include "analyzer/verbs/explain.h"

namespace kshim::explain {
namespace {

using analysis::Page;
using analysis::Tone;

std::string names_of(const Meaning& meaning) {
  if (meaning.driver_name.empty()) return meaning.runtime_name;
  if (meaning.runtime_name.empty()) return meaning.driver_name;
  return meaning.runtime_name + ", " + meaning.driver_name;
}

// Every string that a log can have put there, before anything is laid out.
Explanation cleaned(Explanation dirty, bool unicode) {
  const auto clean = [unicode](std::string& text) {
    text = unicode ? analysis::harmless(text) : analysis::ascii(text);
  };
  analysis::each_string(dirty.findings, clean);
  for (auto* list : {&dirty.facts, &dirty.notes, &dirty.nearest}) {
    for (std::string& text : *list) clean(text);
  }
  clean(dirty.subject);
  clean(dirty.quote);
  return dirty;
}

analysis::RenderOptions options_for(const Explanation& explanation, analysis::RenderOptions options) {
  options.whole_commands = explanation.windows;
  return options;
}

class Writer {
 public:
  Writer(const Explanation& dirty, const analysis::RenderOptions& options)
      : explanation_(cleaned(dirty, options.unicode)),
        page_(options_for(dirty, options)),
        verbose_(options.verbose) {}

  std::string write() {
    print_head();
    print_facts();
    for (const analysis::Finding& finding : explanation_.findings)
      print_finding(finding, verbose_ ? analysis::Detail::everything : analysis::Detail::full, page_);
    print_also();
    print_next();
    for (const std::string& note : explanation_.notes) {
      page_.blank();
      page_.titled(Tone::strong, "note:", note);
    }
    return std::move(page_).take();
  }

 private:
  void print_head() {
    for (const Meaning& meaning : explanation_.meanings) {
      page_.titled(Tone::strong, fmt::format("{}:", meaning.code), meaning.message, Tone::strong);
      page_.paragraph(names_of(meaning), 2);
      if (!meaning.note.empty()) page_.paragraph(meaning.note, 2);
    }
    if (explanation_.asked == Asked::log && explanation_.line != 0) {
      page_.blank();
      page_.row("line", fmt::format("{} of {}", explanation_.line, explanation_.subject));
      page_.row("says", explanation_.quote);
    }
    if (explanation_.recognised) return;
    page_.titled(Tone::warning, "not recognised:",
                 explanation_.asked == Asked::log
                     ? fmt::format("{} holds no failure of CUDA's that kshim knows", explanation_.subject)
                     : fmt::format("`{}` is no error of CUDA's that kshim knows", explanation_.subject));
    if (!explanation_.nearest.empty())
      page_.paragraph(fmt::format("Names that are like it: {}.", analysis::join(explanation_.nearest, ", ")),
                      2);
    page_.paragraph(
        "Paste the whole message, or give the log with --log FILE; `kshim run -- PROGRAM` records what "
        "really fails.",
        2);
  }

  void print_facts() {
    if (explanation_.facts.empty()) return;
    page_.blank();
    for (std::size_t i = 0; i < explanation_.facts.size(); ++i)
      page_.row(i == 0 ? "read" : "", explanation_.facts[i]);
  }

  void print_also() {
    if (explanation_.also.empty()) return;
    page_.blank();
    page_.line(page_.paint(Tone::strong, "It can also be"));
    for (const Possibility& also : explanation_.also)
      page_.paragraph(fmt::format("- {}: {}", analysis::row_of(also.cause).name, also.when), 2, 2);
  }

  void print_next() {
    if (explanation_.next.empty()) return;
    page_.blank();
    page_.line(page_.paint(Tone::strong, "To know for certain"));
    for (const NextStep& step : explanation_.next) {
      page_.command(step.command, 4);
      page_.paragraph(analysis::as_sentence(step.why), 6);
    }
  }

  const Explanation explanation_;
  Page page_;
  bool verbose_;
};

}  // namespace

std::string render_text(const Explanation& explanation, const analysis::RenderOptions& options) {
  return Writer(explanation, options).write();
}

}  // namespace kshim::explain
