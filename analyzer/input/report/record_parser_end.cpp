// SPDX-License-Identifier: Apache-2.0
// What can be said of a report only when all of its lines were read.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "analyzer/input/report/record_parser.h"
#include "analyzer/input/report/report_check.h"
#include "analyzer/input/report/same_stacks.h"
#include "kshim/report/schema.h"

namespace kshim::analysis {

using report::RecordType;

void RecordParser::note(std::string text, std::uint32_t line) {
  report_.notes.push_back({line, std::move(text)});
}

void RecordParser::count(const Fields& from) {
  const auto seq = from.seq();
  if (!seq) return;
  unordered_ = unordered_ || (seq_ && *seq <= *seq_);
  seq_ = std::max(*seq, seq_.value_or(0));
}

void RecordParser::note_left_out() {
  for (const report::RecordRow& row : report::kRecords) {
    const Kept& kept = this->kept(static_cast<RecordType>(&row - report::kRecords));
    if (kept.left_out == 0) continue;
    note(fmt::format("{} `{}` records are judged, {} more are left out: so many are in no report of a shim",
                     kept.records, row.type, kept.left_out));
  }
}

// Numbers run from 0 without gaps but where a record could not be written, which `end` counts.
void RecordParser::note_missing(std::uint64_t skipped) {
  if (unordered_)
    note("the records are not in the order in which they were written, or some are there twice");
  const std::uint64_t dropped = report_.end ? report_.end->dropped : 0;
  if (dropped != 0)
    note(fmt::format("{} could not be written, as the shim says at the end: there was no space left, or "
                     "there were more than it keeps",
                     dropped == 1 ? std::string("a record") : fmt::format("{} records", dropped)),
         report_.end->line);
  if (!seq_ || unordered_ || *seq_ < records_ + skipped) return;
  const std::uint64_t missing = *seq_ - records_ - skipped + 1;
  if (missing <= dropped) return;
  report_.missing += missing - dropped;
  note(fmt::format("{} that the shim wrote {} missing, as the numbers of the others tell",
                   missing == 1 ? std::string("a record") : fmt::format("{} records", missing),
                   missing == 1 ? "is" : "are"));
}

void RecordParser::finish(std::uint64_t skipped) {
  const std::size_t used = kept(RecordType::failure).bytes;
  report_.kept += fill_same_stacks(report_, limit_of(RecordType::failure).bytes - used);
  note_left_out();
  note_missing(skipped);
  if (after_end_ != 0 && report_.end)
    note(fmt::format(
             "{} after it: of threads that outlived the end, or lines were moved",
             after_end_ == 1 ? std::string("a record stands") : fmt::format("{} records stand", after_end_)),
         report_.end->line);
  check_report(report_, {.objects = left_out(RecordType::object) == 0,
                         .modules = left_out(RecordType::module) == 0,
                         .devices = left_out(RecordType::device) == 0,
                         .failures = left_out(RecordType::failure) == 0});
}

}  // namespace kshim::analysis
