// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/finding_table.h"

#include <utility>

#include "analyzer/diagnose/advice_input.h"
#include "analyzer/diagnose/merge.h"

namespace kshim::analysis {
namespace {

// More distinct findings come from no honest set of reports, and are read by nobody. Errors have room of
// their own: what is merely worth a note cannot crowd them out.
constexpr std::size_t kMostErrors = 4096;
constexpr std::size_t kMostQuiet = 2048;
constexpr std::size_t kMostText = std::size_t{256} << 20;
constexpr std::size_t kMostSightings = std::size_t{1} << 22;

std::size_t weight_of(const std::vector<std::string>& texts) {
  std::size_t out = 0;
  for (const std::string& text : texts) out += sizeof(text) + text.size();
  return out;
}

std::size_t weight_of(const Finding& finding) {
  std::size_t out = sizeof(finding) + finding.object.size() + finding.headline.size() +
                    finding.failed_kernel.size() + weight_of(finding.kernels) + weight_of(finding.have) +
                    weight_of(finding.remarks);
  for (const Evidence& row : finding.evidence) {
    out += sizeof(row) + row.text.size() + row.at.file.size();
    for (const auto& [name, value] : row.arguments) out += sizeof(value) + name.size() + value.size();
  }
  for (const ReportLine& row : finding.failures) out += sizeof(row) + row.file.size();
  for (const Device& row : finding.devices) out += sizeof(row) + row.name.size();
  for (const Place& row : finding.where)
    out += sizeof(row) + row.file.size() + row.function.size() + row.object.size();
  // What its fixes depend on is little beside the images.
  if (finding.about) out += sizeof(AdviceInput) + finding.about->images.size() * sizeof(ImageFact);
  return out + finding.images.size() * sizeof(ImageVerdict);
}

}  // namespace

void FindingTable::add(Finding&& finding, std::optional<std::uint32_t> process) {
  const std::uint64_t count = finding.count;
  std::string key = key_of(finding);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    Row& row = rows_[found->second];
    weight_ -= row.weight;
    merge(row.finding, std::move(finding));
    row.weight = weight_of(row.finding);
    weight_ += row.weight;
    see(row, process, count);
    return;
  }
  const bool error = finding.severity == Severity::error;
  const std::size_t weight = weight_of(finding);
  const bool full = error ? rows_.size() - quiet_ >= kMostErrors : quiet_ >= kMostQuiet;
  if (full || weight_ + weight > kMostText) {
    ++left_out_;
    return;
  }
  quiet_ += error ? 0 : 1;
  weight_ += weight;
  by_key_.emplace(std::move(key), rows_.size());
  rows_.push_back({std::move(finding), {}, 0, weight});
  see(rows_.back(), process, count);
}

void FindingTable::see(Row& row, std::optional<std::uint32_t> process, std::uint64_t count) {
  if (!process) return;
  if (!row.seen.empty() && row.seen.back().process == *process) {
    row.seen.back().count = saturated(row.seen.back().count, count);
    return;
  }
  ++row.processes;
  if (sightings_ == kMostSightings) return;
  ++sightings_;
  row.seen.push_back({*process, count});
}

}  // namespace kshim::analysis
