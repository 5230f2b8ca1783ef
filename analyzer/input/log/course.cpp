// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/course.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/input/log/clues.h"

namespace kshim::explain {
namespace {

using analysis::Cause;

// "Ignore the above" stands right below what it is about.
constexpr std::uint64_t kNear = 2;

// What a program does without, on the CPU. After other failures, steps that go on being printed may count
// results that nobody computed.
bool may_do_without(Cause cause) { return has_trait(cause, analysis::cause_trait::optional); }

}  // namespace

std::string survived(const Course& course, const Hit& hit, Cause cause) {
  if (hit.goes_on) return "The line says itself that the program goes on without it";
  if (hit.thrown) return {};
  const auto near = std::find_if(course.goes_on.begin(), course.goes_on.end(), [&](std::uint64_t line) {
    return line > hit.line && line <= hit.line + kNear;
  });
  if (near != course.goes_on.end())
    return fmt::format("Line {} says that the program goes on without it", *near);
  if (course.last_finished > hit.line)
    return fmt::format("The program came to its end: line {}: {}", course.last_finished,
                       course.last_finished_quote);
  if (may_do_without(cause) && course.last_works > hit.line)
    return fmt::format("The program went on: line {}: {}", course.last_works, course.last_works_quote);
  return {};
}

const Death* death_after(const Course& course, const Hit& hit) {
  for (auto death = course.deaths.rbegin(); death != course.deaths.rend(); ++death) {
    if (death->line > hit.line && death->line > course.last_finished) return &*death;
  }
  return nullptr;
}

}  // namespace kshim::explain
