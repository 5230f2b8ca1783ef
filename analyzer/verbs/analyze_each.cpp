// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/analyze_each.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "analyzer/advise/advice.h"
#include "analyzer/core/memory_limit.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/report_facts.h"

namespace kshim::verbs {
using diagnose::AnalysisOptions;
using input::Report;

namespace {

constexpr std::size_t kMaxReports = 64;                        // of a batch
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 10;  // of a batch of several
constexpr std::size_t kMaxAhead = 2;                           // batches a thread that wait to be written

/// What all threads have in common.
class Stream {
 public:
  Stream(const std::vector<std::filesystem::path>& paths, const AnalysisOptions& options,
         const LineMaker& line, const std::function<void(std::string_view)>& write,
         std::vector<std::string>& notes)
      : walk_(paths, notes), options_(options), line_(line), write_(write) {}

  EachCounts run(unsigned jobs) {
    if (jobs == 0) jobs = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    ahead_ = kMaxAhead * jobs;
    next_ = walk_.next();
    {
      std::vector<std::jthread> threads;
      core::allow_threads(jobs - 1);
      try {
        while (threads.size() + 1 < jobs) threads.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // no more than these
      }
      work();
    }
    if (failed_) std::rethrow_exception(failed_);
    return counts_;
  }

 private:
  void work() noexcept {
    try {
      EachReport judge(options_);
      for (std::unique_lock lock(mutex_);;) {
        changed_.wait(lock, [&] { return failed_ || !next_ || begun_ - written_ < ahead_; });
        if (failed_ || !next_) return;
        const std::vector<ReportFile> batch = begin();
        const std::size_t number = begun_++;
        lock.unlock();
        EachCounts counts;
        std::string text;
        for (const ReportFile& file : batch) text += line_of(file, judge, counts);
        lock.lock();
        counts_.reports += counts.reports;
        counts_.rejected += counts.rejected;
        counts_.errors = counts_.errors || counts.errors;
        ready_.emplace(number, std::move(text));
        for (auto at = ready_.begin(); at != ready_.end() && at->first == written_; at = ready_.begin()) {
          write_(at->second);
          ready_.erase(at);
          ++written_;
        }
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_) failed_ = std::current_exception();
      changed_.notify_all();
    }
  }

  std::vector<ReportFile> begin() {
    std::vector<ReportFile> out;
    for (std::uint64_t bytes = 0;
         next_ && out.size() < kMaxReports && (out.empty() || bytes + next_->bytes <= kMaxBytes);
         next_ = walk_.next()) {
      bytes += next_->bytes;
      out.push_back(*std::move(next_));
    }
    return out;
  }

  std::string line_of(const ReportFile& file, EachReport& judge, EachCounts& counts) {
    ++counts.reports;
    auto read = read_report(file.path, {}, input::HomePaths::hidden);
    if (const auto* report = std::get_if<Report>(&read); report != nullptr && report->linked)
      read = "is behind another user's symbolic link";
    if (const auto* why = std::get_if<std::string>(&read)) {
      ++counts.rejected;
      Analysis out;
      out.verdict = Verdict::incomplete;
      out.rejected = {{file.path, *why, file.owner}};
      return line_(out);
    }
    Report& report = std::get<Report>(read);
    if (options_.trust_reports) report.foreign = false;
    Analysis analysis = judge.judge(report);
    analysis.facts = std::make_shared<const ReportFacts>(facts_of(report, analysis, file, judge.files()));
    for (const input::ReportNote& note : report.notes)
      analysis.notes.push_back(fmt::format("{}: {}", place_of(report, note), note.text));
    counts.errors =
        counts.errors || worst(analysis) == core::Severity::error || analysis.verdict == Verdict::failure;
    return line_(analysis);
  }

  ReportWalk walk_;
  const AnalysisOptions& options_;
  const LineMaker& line_;
  const std::function<void(std::string_view)>& write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ReportFile> next_;
  std::size_t ahead_ = 0;
  std::size_t begun_ = 0, written_ = 0;       ///< batches
  std::map<std::size_t, std::string> ready_;  ///< by number
  std::exception_ptr failed_;
  EachCounts counts_;
};

}  // namespace

EachCounts analyze_each(const std::vector<std::filesystem::path>& reports_or_folders,
                        const AnalysisOptions& options, unsigned jobs, const LineMaker& line,
                        const std::function<void(std::string_view)>& write, std::vector<std::string>& notes) {
  return Stream(reports_or_folders, options, line, write, notes).run(jobs);
}

}  // namespace kshim::verbs
