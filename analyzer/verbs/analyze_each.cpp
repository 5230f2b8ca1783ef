// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/analyze_each.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "analyzer/input/report/alike.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/processes.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::verbs {
namespace {

constexpr std::size_t kMaxReports = 64;                        // of a batch
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 10;  // of a batch of several
constexpr std::size_t kMaxAhead = 2;                           // batches a thread that wait to be written

/// Analyses without a finding, by what their reports have in common: most processes of a fleet fail nowhere,
/// and write what others of their program wrote.
class Quiet {
 public:
  std::shared_ptr<const Analysis> find(const Alike& alike) {
    const std::lock_guard lock(mutex_);
    const auto row = alike.key ? rows_.find(*alike.key) : rows_.end();
    return row == rows_.end() ? nullptr : row->second;
  }
  void add(const Alike& alike, const Report& report, const Analysis& analysis) {
    if (!alike.key || !has_places(report, alike) || !analysis.findings.empty() || !analysis.notes.empty() ||
        !analysis.blind.empty() || analysis.processes.size() != 1 || !report.failures.empty() ||
        analysis.devices.size() != alike.gpus.size())
      return;
    const std::lock_guard lock(mutex_);
    if (rows_.size() >= kMax) rows_.clear();
    rows_.emplace(*alike.key, std::make_shared<const Analysis>(analysis));
  }
  /// `like` of another process.
  static Analysis of(const Analysis& like, const Report& report, const Alike& alike) {
    Analysis out = like;
    ProcessSummary& process = out.processes.front();
    identify(report, process);
    process.sample = report.process.sample.value_or(1);
    process.run = run_id(report);
    for (RunSummary& run : out.runs) run.run = process.run;
    for (std::size_t at = 0; at < out.devices.size(); ++at) {
      out.devices[at].host = report.process.host;
      std::tie(out.devices[at].uuid, out.devices[at].pci) = std::tie(alike.gpus[at][0], alike.gpus[at][1]);
    }
    return out;
  }

 private:
  static constexpr std::size_t kMax = 8192;
  struct Hash {
    std::size_t operator()(const Alike::Key& key) const { return key.front(); }
  };
  std::mutex mutex_;
  std::unordered_map<Alike::Key, std::shared_ptr<const Analysis>, Hash> rows_;
};

/// What all threads have in common.
class Stream {
 public:
  Stream(const std::vector<std::filesystem::path>& paths, const AnalysisOptions& options,
         const std::function<std::string(const Analysis&)>& line,
         const std::function<void(std::string_view)>& write, std::vector<std::string>& notes)
      : walk_(paths, notes), options_(options), line_(line), write_(write) {
    options_.keep_private = true;
  }

  EachCounts run(unsigned jobs) {
    if (jobs == 0) jobs = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    ahead_ = kMaxAhead * jobs;
    next_ = walk_.next();
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 1; i < jobs; ++i) threads.emplace_back([this] { work(); });
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
        for (const ReportFile& file : batch) text += line_(analysis_of(file, judge, counts));
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

  Analysis analysis_of(const ReportFile& file, EachReport& judge, EachCounts& counts) {
    ++counts.reports;
    Alike alike;
    std::shared_ptr<const Analysis> like;
    auto read =
        read_report(file.path, {}, HomePaths::hidden, [&](const Report& report, std::string_view lines) {
          alike = alike_of(report, lines);
          like = quiet_.find(alike);
          return like != nullptr;
        });
    if (const auto* report = std::get_if<Report>(&read); report != nullptr && report->linked)
      read = "is behind another user's symbolic link";
    Analysis out;
    if (const auto* why = std::get_if<std::string>(&read)) {
      ++counts.rejected;
      out.verdict = Verdict::incomplete;
      out.rejected = {{file.path, *why}};
      return out;
    }
    Report& report = std::get<Report>(read);
    if (like != nullptr) return Quiet::of(*like, report, alike);
    if (options_.trust_reports) report.foreign = false;
    out = judge.judge(report);
    for (const ReportNote& note : report.notes)
      out.notes.push_back(fmt::format("{}: {}", place_of(report, note), note.text));
    quiet_.add(alike, report, out);
    counts.errors = counts.errors || worst(out) == Severity::error || out.verdict == Verdict::failure;
    return out;
  }

  ReportWalk walk_;
  AnalysisOptions options_;
  Quiet quiet_;
  const std::function<std::string(const Analysis&)>& line_;
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
                        const AnalysisOptions& options, unsigned jobs,
                        const std::function<std::string(const Analysis&)>& line,
                        const std::function<void(std::string_view)>& write, std::vector<std::string>& notes) {
  return Stream(reports_or_folders, options, line, write, notes).run(jobs);
}

}  // namespace kshim::verbs
