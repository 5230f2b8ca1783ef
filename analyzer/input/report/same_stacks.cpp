// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/same_stacks.h"

#include <fmt/core.h>

#include <unordered_map>

#include "analyzer/input/report/limits.h"

namespace kshim::analysis {
namespace {

/// Failures of which the same is to be said; the first is named.
class Wrong {
 public:
  explicit Wrong(std::string_view how) : how_(how) {}
  void add(const FailureRecord& failure, std::string_view frames, std::uint64_t of) {
    if (count_++ == 0) {
      line_ = failure.line;
      text_ = fmt::format("`failure` {} has the {} frames of failure {}", failure.id, frames, of);
    }
  }
  void note(Report& report) const {
    if (count_ == 0) return;
    const std::string more = count_ > 1 ? fmt::format(" ({} more like this)", count_ - 1) : "";
    report.notes.push_back({line_, fmt::format("{}, {}{}", text_, how_, more)});
  }

 private:
  std::string_view how_;
  std::uint64_t count_ = 0;
  std::uint32_t line_ = 0;
  std::string text_;
};

class Filler {
 public:
  Filler(Report& report, std::size_t room) : report_(report), room_(room) {
    for (const FailureRecord& row : report.failures) by_id_.emplace(row.id, &row);
  }

  template <class Frame>
  void fill(std::string_view what, std::vector<Frame> FailureRecord::*frames,
            std::optional<std::uint64_t> FailureRecord::*of) {
    for (FailureRecord& row : report_.failures) {
      if (!(row.*of)) continue;
      if (!(row.*frames).empty()) {
        both_.add(row, what, *(row.*of));
        continue;
      }
      const auto named = by_id_.find(*(row.*of));
      if (named == by_id_.end()) {
        nowhere_.add(row, what, *(row.*of));
      } else if ((named->second->*of) || (named->second->*frames).empty()) {
        without_.add(row, what, *(row.*of));
      } else if (const std::size_t weight = heap_of(named->second->*frames); weight > room_ - taken_) {
        too_much_.add(row, what, *(row.*of));
      } else {
        if (named->second->line > row.line) later_.add(row, what, *(row.*of));
        row.*frames = named->second->*frames;
        taken_ += weight;
      }
    }
  }

  std::size_t finish() {
    for (const Wrong* wrong : {&nowhere_, &without_, &too_much_, &later_, &both_}) wrong->note(report_);
    return taken_;
  }

 private:
  Report& report_;
  std::size_t room_;
  std::size_t taken_ = 0;
  std::unordered_map<std::uint64_t, const FailureRecord*> by_id_;
  Wrong nowhere_{"which is not there: its stack is not known"};
  Wrong without_{"which has none itself: its stack is not known"};
  Wrong too_much_{"and there is no room for so many: its stack is left out"};
  Wrong later_{"which comes later: the lines are not in their order"};
  Wrong both_{"and frames of its own: those count"};
};

}  // namespace

std::size_t fill_same_stacks(Report& report, std::size_t room) {
  Filler filler(report, room);
  filler.fill("native", &FailureRecord::native, &FailureRecord::native_of);
  filler.fill("Python", &FailureRecord::python, &FailureRecord::python_of);
  filler.fill("main thread's Python", &FailureRecord::python_main, &FailureRecord::python_main_of);
  return filler.finish();
}

}  // namespace kshim::analysis
