// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/analyze_each.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "analyzer/advise/advice.h"
#include "analyzer/core/memory_limit.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/input/report/report_reader.h"

namespace kshim::verbs {
using diagnose::AnalysisOptions;
using input::Alike;
using input::Report;

namespace {

constexpr std::size_t kMaxReports = 64;                        // of a batch
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 10;  // of a batch of several
constexpr std::size_t kMaxAhead = 2;                           // batches a thread that wait to be written

/// A line, and what the exit status needs of it.
struct Judged {
  LinePattern line;
  bool wrong = false;
};

/// Lines of reports that were judged, by what others have in common with them: ranks of a job and jobs of a
/// program write the same but for times and for what tells processes apart. What is judged depends on files
/// of this machine, too, which are taken to stay as they are.
class Lines {
 public:
  std::shared_ptr<const Judged> find(const Alike& alike) {
    const std::lock_guard lock(mutex_);
    for (const auto* rows : {&late_, &early_})
      for (const auto& key : {alike.key, alike.key_with_program})
        if (const auto row = key ? rows->find(*key) : rows->end(); row != rows->end()) return row->second;
    return nullptr;
  }
  void add(const Alike::Key& key, std::shared_ptr<const Judged> judged) {
    const std::size_t weight = sizeof(Judged) + judged->line.weight();
    const std::lock_guard lock(mutex_);
    if (weight_ + weight > kMaxBytes / 2) early_ = std::exchange(late_, {}), weight_ = 0;
    if (late_.insert_or_assign(key, std::move(judged)).second) weight_ += weight;
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Hash {
    std::size_t operator()(const Alike::Key& key) const { return key.front(); }
  };
  using Rows = std::unordered_map<Alike::Key, std::shared_ptr<const Judged>, Hash>;
  std::mutex mutex_;
  Rows late_, early_;       ///< the early ones go when there is no room for more
  std::size_t weight_ = 0;  ///< of the late ones
};

/// What all threads have in common.
class Stream {
 public:
  Stream(const std::vector<std::filesystem::path>& paths, const AnalysisOptions& options,
         const LineMaker& maker, const std::function<void(std::string_view)>& write,
         std::vector<std::string>& notes)
      : walk_(paths, notes), options_(options), maker_(maker), write_(write) {
    options_.keep_private = true;
  }

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
    Alike alike;
    std::shared_ptr<const Judged> like;
    auto read = read_report(file.path, {}, input::HomePaths::hidden,
                            [&](const Report& report, std::string_view lines) {
                              alike = alike_of(report, lines);
                              like = lines_.find(alike);
                              return like != nullptr;
                            });
    if (const auto* report = std::get_if<Report>(&read); report != nullptr && report->linked)
      read = "is behind another user's symbolic link";
    if (const auto* why = std::get_if<std::string>(&read)) {
      ++counts.rejected;
      Analysis out;
      out.verdict = Verdict::incomplete;
      out.rejected = {{file.path, *why, file.owner}};
      return maker_.line(out);
    }
    Report& report = std::get<Report>(read);
    if (like == nullptr) {
      if (options_.trust_reports) report.foreign = false;
      Durations durations;
      const bool shared = alike.key && has_places(report, alike);
      Analysis analysis =
          judge.judge(report, shared ? AnalysisOptions::Duration(std::ref(durations)) : nullptr);
      analysis.facts = std::make_shared<const ReportFacts>(facts_of(report, analysis, file, judge.files()));
      for (const input::ReportNote& note : report.notes)
        analysis.notes.push_back(fmt::format("{}: {}", place_of(report, note), note.text));
      const bool wrong = worst(analysis) == core::Severity::error || analysis.verdict == Verdict::failure;
      if (!shared) {
        counts.errors = counts.errors || wrong;
        return maker_.line(analysis);
      }
      like = std::make_shared<const Judged>(Judged{LinePattern(analysis, durations, maker_), wrong});
      alike.gpus.resize(analysis.devices.size());
      if (can_be_shared(report, analysis, alike))
        lines_.add(needs_program(report, analysis) ? *alike.key_with_program : *alike.key, like);
    }
    counts.errors = counts.errors || like->wrong;
    return like->line.fill(report, file, alike, maker_);
  }

  /// What names a process elsewhere than in the places of a pattern is that process' alone.
  static bool can_be_shared(const Report& report, const Analysis& analysis, const Alike& alike) {
    return analysis.notes.empty() && analysis.blind.empty() && analysis.facts->damage.empty() &&
           analysis.devices.size() == report.devices.size() && alike.gpus.size() == report.devices.size();
  }

  /// Whether the line depends on which program it was.
  static bool needs_program(const Report& report, const Analysis& analysis) {
    return std::ranges::any_of(analysis.findings, [&](const core::Finding& finding) {
      return report.foreign || std::ranges::any_of(finding.fixes, &core::Fix::names_program);
    });
  }

  ReportWalk walk_;
  AnalysisOptions options_;
  Lines lines_;
  const LineMaker& maker_;
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
                        const AnalysisOptions& options, unsigned jobs, const LineMaker& maker,
                        const std::function<void(std::string_view)>& write, std::vector<std::string>& notes) {
  return Stream(reports_or_folders, options, maker, write, notes).run(jobs);
}

}  // namespace kshim::verbs
