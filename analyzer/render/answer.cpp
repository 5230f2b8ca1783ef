// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/answer.h"

#include "analyzer/render/finding_page.h"
#include "analyzer/render/sentences.h"

namespace kshim::render {
using core::Assumed;
using core::Finding;
using core::Tone;

namespace {

constexpr double kSureEnough = 0.8;        // below, the answer says how sure it is
constexpr double kKnown = 0.46;            // below, an unknown cause has no fix
constexpr std::size_t kBlocks = 2;         // answers on one screen
constexpr std::size_t kQuoted = 76;        // columns of a log's line
constexpr std::size_t kOtherCommands = 1;  // of the other way: more are on the page of --verbose
constexpr std::size_t kNotThis = 2;

// Up to the name of the file: "/usr/lib/x/libfoo.so" as ".../libfoo.so".
std::string_view short_path(std::string_view word) {
  constexpr std::size_t kLongest = 28;
  const std::size_t slash = word.find_last_of("/\\");
  const bool folders = word.find_first_of("/\\") != slash && word.find("://") == std::string_view::npos;
  return word.size() > kLongest && folders && slash + 1 < word.size() ? word.substr(slash) : word;
}

// The line with its paths shortened, and the part moved along.
std::string with_short_paths(std::string_view line, core::TextPart& part) {
  constexpr std::string_view kEnds = " \t'\"`()[]{}<>,;=|";
  std::string out;
  core::TextPart moved = part;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kEnds, at), line.size());
    std::string_view word = line.substr(at, end - at);
    const std::string_view colons = word.substr(std::min(word.find_last_not_of(':') + 1, word.size()));
    word.remove_suffix(colons.size());
    const std::string_view kept = short_path(word);
    const std::size_t shift = word.size() - kept.size();
    const std::size_t mark = shift == 0 ? 0 : 3;
    // What begins within the path begins with its mark.
    const auto place = [&](std::size_t old, std::size_t& now) {
      if (old >= at && old <= end) now = out.size() + (old - at > shift ? old - at - shift + mark : 0);
    };
    place(part.from, moved.from);
    place(part.to, moved.to);
    out.append(mark, '.').append(kept).append(colons);
    if (end < line.size()) out += line[end];
    at = end + 1;
  }
  if (part.to >= line.size()) moved.to = out.size();
  part = moved;
  return out;
}

// Bytes of a line, cut where characters begin.
std::string_view piece(std::string_view line, std::size_t from, std::size_t to) {
  const auto inside = [&](std::size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;
  };
  while (from != 0 && inside(from)) --from;
  while (inside(to)) ++to;
  return line.substr(from, std::min(to, line.size()) - from);
}

// The part of a long line that decides, with what stands around it; of a long part, its two ends.
std::string around(std::string_view quote, core::TextPart part) {
  const std::string line = with_short_paths(quote, part);
  if (terminal_columns(line) <= kQuoted) return line;
  constexpr std::size_t kBefore = 12;  // the place, or the exception's name
  constexpr std::string_view kMark = "...";
  std::size_t from = part.from - std::min(part.from, kBefore);
  std::string out;
  if (part.to - from > kQuoted) {
    constexpr std::size_t kHalf = kQuoted / 2;
    out = fmt::format("{}{}", piece(line, from, from + kHalf), kMark);
    const std::size_t rest = part.to - kHalf / 2;
    out += piece(line, rest, rest + kHalf);
    if (rest + kHalf < line.size()) out += kMark;
  } else {
    from = std::min(from, line.size() - kQuoted);
    out = piece(line, from, from + kQuoted);
    if (from + kQuoted < line.size() && !out.ends_with(kMark)) out += kMark;
  }
  return from != 0 && !out.starts_with(kMark) ? fmt::format("{}{}", kMark, out) : out;
}

struct AnswerWriter {
  void write() {
    doc_.open_finding(number_, kind_of(finding_), with_values(title_of(finding_), finding_));
    place();
    if (finding_.cause == core::Cause::unknown && finding_.confidence < kKnown && !at_.decide.empty()) {
      // Nothing to do is known: the command that decides is the answer.
      doc_.gap();
      doc_.say(Tone::good, "To decide:", at_.decide, Tone::strong);
      return doc_.close_finding();
    }
    first_fix();
    other_fix();
    not_this();
    how_sure();
    doc_.close_finding();
  }

  // One line of the log, or the user's own line and the call.
  void place() {
    if (at_.line.line != 0) {
      const std::string where = at_.line.text();
      doc_.paragraph(
          {code(std::string(core::basename_of(where))), {"  "}, {'"' + around(at_.quote, at_.part) + '"'}}, 2,
          2);
      if (!finding_.where.empty())
        doc_.paragraph({{"from "}, code(place_text(finding_.where.front()))}, 2, 2);
      for (const core::Evidence& row : finding_.evidence)
        if (row.id == core::EvidenceId::on_cpu) doc_.paragraph({{row.text}}, 2, 2);
      return;
    }
    Line line;
    if (!finding_.where.empty()) line.push_back(code(place_text(finding_.where.front())));
    if (const Line call = call_of(finding_); !call.empty()) {
      if (!line.empty()) line.push_back({": "});
      line.insert(line.end(), call.begin(), call.end());
    }
    if (!line.empty()) doc_.paragraph(std::move(line), 2, 2);
    if (!finding_.seen_in.empty()) doc_.paragraph({{"in " + finding_.seen_in}}, 2, 2);
  }

  void first_fix() {
    if (finding_.fixes.empty()) return;
    const core::Fix& fix = finding_.fixes.front();
    doc_.gap();
    doc_.say(Tone::good, fmt::format("Do this [{}]:", words_of(fix.actor)), fix.title, Tone::strong);
    doc_.commands(fix.commands);
    if (!fix.why.empty()) doc_.paragraph({{"Why: " + fix.why}}, 2, 5);
    std::vector<std::string> assumed;
    for (const Assumed what : fix.assumed)
      if (decides(what)) assumed.emplace_back(words_of(what));
    if (!assumed.empty())
      doc_.paragraph({{fmt::format("The log does not name {}.", core::enumerate(assumed))}}, 2, 2);
  }

  // What another person can do.
  void other_fix() {
    if (finding_.fixes.empty()) return;
    const auto other = std::ranges::find_if(
        finding_.fixes, [&](const core::Fix& fix) { return fix.actor != finding_.fixes.front().actor; });
    if (other == finding_.fixes.end()) return;
    doc_.gap();
    doc_.say(Tone::strong, fmt::format("If you cannot [{}]:", words_of(other->actor)), other->title);
    if (other->commands.size() <= kOtherCommands) doc_.commands(other->commands);
  }

  void not_this() {
    std::vector<std::string> actions;
    for (const core::DeadEnd& end : finding_.dead_ends)
      if (actions.size() < kNotThis) actions.push_back(end.action);
    if (actions.empty()) return;
    doc_.gap();
    doc_.say(Tone::strong, "Not this:", core::join(actions, "; "));
  }

  void how_sure() {
    if (finding_.confidence >= kSureEnough || counts(finding_)) return;
    if (finding_.dead_ends.empty()) doc_.gap();
    std::string text = fmt::format("{:.0f} %.", finding_.confidence * 100);
    if (!at_.decide.empty()) text += " To decide: " + at_.decide;
    doc_.say(Tone::strong, "Sure:", text);
  }

  // What decides which fix it is; how commands are typed shows in them.
  static bool decides(Assumed what) {
    return what == Assumed::gpu || what == Assumed::cuda || what == Assumed::driver;
  }

  const Finding& finding_;
  std::size_t number_;
  const AnswerAt& at_;
  Document& doc_;
};

}  // namespace

void write_answer(const Finding& finding, std::size_t number, const AnswerAt& at, Document& document) {
  AnswerWriter{finding, number, at, document}.write();
}

Finding outside_cuda(const verbs::OtherAnswer& other) {
  Finding out;
  out.headline = "not a CUDA failure: " + other.what;
  out.confidence = 1;
  out.fixes = {other.remedy};
  return out;
}

void write_answers(std::span<const Finding> findings, const AnswerAt& at, Document& document) {
  std::vector<const Finding*> problems;
  for (const Finding& finding : findings)
    if (is_problem(finding)) problems.push_back(&finding);
  const AnswerAt elsewhere;
  for (std::size_t i = 0; i < std::min(problems.size(), kBlocks); ++i)
    write_answer(*problems[i], i + 1, i == 0 ? at : elsewhere, document);
  if (problems.size() <= kBlocks) return;
  document.gap();
  document.paragraph({{fmt::format("and {}", core::counted(problems.size() - kBlocks, "more finding"))}});
}

}  // namespace kshim::render
