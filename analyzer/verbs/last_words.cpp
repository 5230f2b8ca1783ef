// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/last_words.h"

#include <re2/re2.h>

#include "analyzer/core/text.h"

namespace kshim::verbs {
namespace {

// The words that a refusal is made of.
bool is_about_gpu(std::string_view text) {
  static const RE2 kOfGpus(
      R"((?i)\bcu(?:da|blas|dnn|sparse|fft|solver|rand|tensor|pti)|gpu|nv\w|nccl|status|device|driver|kernel|arch|support)");
  return RE2::PartialMatch(text, kOfGpus);
}

// torchrun and pytest write something before each line: "[rank0]: ", "E   ".
std::string_view without_prefix(std::string_view line) {
  static const RE2 kPrefix(R"(^(?:\[[\w.:/ -]{1,32}\]:? ?|E {3}))");
  re2::StringPiece rest(line);
  RE2::Consume(&rest, kPrefix);
  return line.substr(line.size() - rest.size());
}

}  // namespace

LastWords last_words(std::string_view text) {
  static const RE2 kPython(R"(^[A-Za-z_][\w.]*(?:$|: .*))");
  static const RE2 kTraceback(R"(^Traceback \(most recent call last\):)");
  static const RE2 kPanic(R"(^thread '.*' (?:\(\d+\) )?panicked at )");
  static const RE2 kThrown(
      R"(^(?:terminate called |libc\+\+abi: terminating|Exception in thread |Unhandled [Ee]xception|panic: |.*[Aa]ssertion .*failed))");
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (const std::string_view line = text.substr(at, end - at); !core::trim(line).empty())
      lines.push_back(without_prefix(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line));
    at = end + 1;
  }
  LastWords out;
  if (lines.empty()) return out;
  constexpr std::size_t kMostBelow = 20;  // of its message; what writes on has not ended by it
  const std::size_t begin = lines.size() - 1;
  std::size_t first = begin;
  bool traceback = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (RE2::PartialMatch(line, kTraceback)) {
      traceback = true;
    } else if (traceback && RE2::PartialMatch(line, kPython)) {
      traceback = false;
      out.exception = true;
      first = i;
    } else if (RE2::PartialMatch(line, kPanic) || RE2::PartialMatch(line, kThrown)) {
      traceback = false;
      out.exception = true;
      first = i;
      // Its words stand on the next line: `  what():  ...`, the message of a panic.
      const bool more = !core::contains(line, "ssertion") && i + 1 < lines.size();
      static const RE2 kWhat(R"(^\s*what\(\):\s*)");
      if (more && (RE2::PartialMatch(lines[i + 1], kWhat) || RE2::PartialMatch(line, kPanic))) first = i + 1;
    }
  }
  if (begin - first > kMostBelow) {
    out.exception = false;
    first = begin;
  }
  out.line = core::trim(lines[first]);
  // A message may go on below: what is said there is of the exception, too.
  for (std::size_t i = first; i < lines.size() && !out.about_gpu; ++i) out.about_gpu = is_about_gpu(lines[i]);
  return out;
}

}  // namespace kshim::verbs
