// SPDX-License-Identifier: Apache-2.0
// Facts that need the words around them, or the line before: requirements that are no GPU's capability, and
// answers of an interpreter.
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

#include "analyzer/data/knowledge.h"
#include "analyzer/input/log/fact_reader.h"

namespace kshim::explain {
namespace {

using image::ComputeCapability;
using image::Version;

enum class Answer : std::uint8_t { cc2, arch_list, toolkit, torch };
struct AnswerRow {
  Answer kind;
  const char* question;
  const char* answer;
};
constexpr AnswerRow kAnswers[] = {
#define KSHIM_ANSWER(kind, question, answer) {Answer::kind, question, answer},
#include "analyzer/input/log/answers.def"
#undef KSHIM_ANSWER
};

struct AnswerPatterns {
  RE2 question;
  RE2 answer;
};
const std::array<std::unique_ptr<AnswerPatterns>, std::size(kAnswers)>& answers() {
  static const auto kPatterns = [] {
    std::array<std::unique_ptr<AnswerPatterns>, std::size(kAnswers)> out;
    std::transform(std::begin(kAnswers), std::end(kAnswers), out.begin(), [](const AnswerRow& row) {
      return std::unique_ptr<AnswerPatterns>(new AnswerPatterns{RE2(row.question), RE2(row.answer)});
    });
    return out;
  }();
  return kPatterns;
}

// GPUs before Kepler have no rows any more, and users.
bool is_known(ComputeCapability cc) {
  return analysis::find_gpu(cc) != nullptr || cc.major == 1 || (cc.major == 2 && cc.minor < 2);
}

RE2::Options without_case() {
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_encoding(RE2::Options::EncodingLatin1);
  return options;
}

}  // namespace

Version leading_version(std::string_view text) {
  // 2.1.0 and 13.0.96 are versions too: the first two numbers count.
  std::size_t dots = 0;
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
    if (text[end] == '.' && ++dots == 2) break;
    ++end;
  }
  const auto version = image::parse_version(text.substr(0, end));
  return version ? *version : Version{};
}

std::optional<ComputeCapability> known_cc(std::string_view text) {
  const auto arch = image::parse_arch(text);
  if (!arch || !is_known(arch->cc)) return std::nullopt;
  return arch->cc;
}

bool is_requirement(std::string_view before, std::string_view after) {
  static const RE2 kAfter(
      R"(\)?\s*(?:\+|>=|(?:or|and) (?:up|higher|above|newer|greater|later|better|more|over)\b|(?:is |are )?(?:the )?(?:required|minimum|needed)\b))",
      without_case());
  static const RE2 kBefore(
      R"(.*\b(?:minimum|at least|requires?|required|needs?|supports?)\b[^,;]{0,60}|.*(?:>=? ?|< ?|\b(?:below|under|lower than|less than|older than) (?:sm_?)?))",
      without_case());
  constexpr std::size_t kNear = 100;
  const std::string_view near = before.substr(before.size() - std::min(before.size(), kNear));
  re2::StringPiece rest(after.data(), after.size());
  return RE2::Consume(&rest, kAfter) || RE2::FullMatch({near.data(), near.size()}, kBefore);
}

// "(11.8)" behind the words for what built it is CUDA's version and no release of the package.
bool is_toolkit_of_build(std::string_view before, std::string_view whole, Version version) {
  static const RE2 kBuilt(R"(.*\b(?:compiled?|built|build)(?: with| against| for)?\s*)", without_case());
  const analysis::ToolkitRow* row = analysis::toolkit_at_most(version);
  return whole.find('(') != std::string_view::npos && row != nullptr && row->version == version &&
         RE2::FullMatch({before.data(), before.size()}, kBuilt);
}

void FactReader::begin_line(const std::string& text) {
  software_.clear();
  if (asked_ >= 0 && text.find_first_not_of(' ') != std::string::npos) {
    std::string fact;
    if (RE2::FullMatch(text, answers()[static_cast<std::size_t>(asked_)]->answer, &fact))
      take_answer(asked_, fact);
    asked_ = -1;
  }
  // Most lines ask nothing; the patterns need not look at them.
  if (text.find("get_") == std::string::npos && text.find("torch.") == std::string::npos) return;
  for (std::size_t row = 0; row < std::size(kAnswers); ++row) {
    if (RE2::PartialMatch(text, answers()[row]->question)) asked_ = static_cast<int>(row);
  }
}

void FactReader::take_answer(int row, const std::string& fact) {
  switch (kAnswers[row].kind) {
    case Answer::cc2:
      add_cc2(fact);
      break;
    case Answer::arch_list:
      add_words(fact, file_);
      break;
    case Answer::toolkit:
      set_toolkit(leading_version(fact));
      break;
    case Answer::torch: {
      const std::size_t plus = fact.find('+');
      PackageClue package;
      package.name = "torch";
      package.written = "torch";
      package.version = fact.substr(0, plus);
      if (plus != std::string::npos) package.variant = fact.substr(plus + 1);
      package.line = clues_.lines;
      note_package(package);
      break;
    }
  }
}

}  // namespace kshim::explain
