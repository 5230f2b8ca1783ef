// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/export.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <thread>
#include <tuple>
#include <variant>

#include "analyzer/core/memory_limit.h"
#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/export/row.h"
#include "analyzer/export/table_files.h"
#include "analyzer/input/report/alike.h"
#include "analyzer/input/report/report_index.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/report_files.h"
#include "kshim/base/hash.h"
#include "kshim/files/open_file.h"
#include "kshim/image/arch.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/select.h"
#include "kshim/report/hmac.h"
#include "kshim/report/redact.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::exports {
namespace {

namespace fs = std::filesystem;
using analysis::Report;
using C = Column;

constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxScanBytes = std::size_t{1} << 30;

struct Input : analysis::ReportFile {
  std::uint64_t id = 0;
};
/// A file as a report or a scan names it.
struct File {
  std::string_view id, path, build_id, package, version, sha256 = {};
};

/// Files whose images were written: once an export, because files with the same build id have the same
/// contents id. When the set is full, further files are written once per report.
class ListedFiles {
 public:
  bool contains(std::string_view id) {
    const std::lock_guard lock(mutex_);
    return ids_.contains(id);
  }
  /// False where it was there.
  bool add(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return ids_.size() < kMax ? ids_.insert(id).second : !ids_.contains(id);
  }
  static constexpr std::size_t kMax = 65536;

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> ids_;
};

/// Users of this machine, asked for once.
class Users {
 public:
  struct User {
    std::string name, home;
  };
  /// nullptr for an unknown user id.
  const User* find(uid_t uid) {
    const std::lock_guard lock(mutex_);
    const auto [row, fresh] = users_.try_emplace(uid);
    if (const passwd* entry = fresh ? ::getpwuid(uid) : nullptr; entry != nullptr)
      row->second = User{entry->pw_name, entry->pw_dir};
    return row->second ? &*row->second : nullptr;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uid_t, std::optional<User>> users_;
};

/// The output rows of a batch of inputs.
struct Batch {
  struct Lines {
    std::string text;
    std::uint64_t rows = 0;
  };
  using Tables = std::map<std::pair<Table, std::string>, Lines>;  ///< by table and day
  Tables tables;
  std::vector<std::pair<std::string, Tables>> files;  ///< by id: written where ListedFiles has none of it
  std::vector<std::uint64_t> taken;
  Result counts;
  std::uint64_t bytes = 0;  ///< of the inputs
};

/// What an export says of a report, and of those that differ from it only in the values that alike.h ignores.
struct Known {
  std::string_view verdict;
  std::string driver, kernel_module;
  std::optional<bool> simulated;
  std::optional<std::uint64_t> exit;
  std::uint64_t modules = 0, failures = 0, dropped = 0;
  bool complete = false;
  std::vector<std::pair<Table, Batch::Lines>> rows;  ///< with places for the values of each report
  std::vector<std::uint32_t> load_of;                ///< the row of `loads` that a module is part of
  std::vector<std::string> files;                    ///< ids, of those that rows of `images` are about
  std::vector<analysis::ReportNote> notes;
};

/// A cache of what is known of reports. One like an earlier one is neither judged nor read whole. What is
/// judged depends on files of this machine, too, and an export takes them to stay as they are.
class Judged {
 public:
  std::shared_ptr<const Known> find(const analysis::Alike& alike) {
    const std::lock_guard lock(mutex_);
    for (const auto* rows : {&late_, &early_})
      for (const auto& key : {alike.key, alike.key_with_program})
        if (const auto row = key ? rows->find(*key) : rows->end(); row != rows->end()) return row->second;
    return nullptr;
  }
  /// Of any program where nothing was found, because only advice depends on the program.
  void add(std::shared_ptr<const Known> known, const analysis::Alike& alike, bool any_program) {
    const auto& key = any_program ? alike.key : alike.key_with_program;
    std::size_t weight = sizeof(Known) + known->load_of.size() * sizeof(known->load_of.front());
    for (const auto& [table, lines] : known->rows) weight += sizeof lines + lines.text.size();
    for (const std::string& file : known->files) weight += sizeof file + file.size();
    const std::lock_guard lock(mutex_);
    if (weight_ + weight > kMaxBytes / 2) early_ = std::exchange(late_, {}), weight_ = 0;
    if (late_.insert_or_assign(*key, std::move(known)).second) weight_ += weight;
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Hash {
    std::size_t operator()(const analysis::Alike::Key& key) const { return key.front(); }
  };
  using Rows = std::unordered_map<analysis::Alike::Key, std::shared_ptr<const Known>, Hash>;
  std::mutex mutex_;
  Rows late_, early_;       ///< the early ones go when there is no room for more
  std::size_t weight_ = 0;  ///< of the late ones
};

/// A report and what was found.
struct Judgment {
  explicit Judgment(Report&& of) : report(std::move(of)), index(report) {}
  Report report;
  analysis::ReportIndex index;
  analysis::Analysis analysis;
  std::vector<std::pair<std::string, std::string>> packages;  ///< of files here: name, version
  std::vector<File> files;                                    ///< of the objects
  std::vector<bool> readable;                                 ///< whether their images are known
};

/// What all threads of an export use.
struct Shared {
  const Options& options;
  Judged judged = {};
  ListedFiles listed = {};
  Users users = {};
};

std::string hash_of(std::string_view text) { return fmt::format("{:016x}", content_hash(bytes_of(text))); }

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

/// What the report says of its job; earlier shims wrote the variables of SLURM alone.
std::string first_set(const analysis::ProcessRecord& process, const char* key, const char* variable) {
  if (const auto row = process.job.find(key); row != process.job.end()) return row->second;
  const auto row = process.env.find(variable);
  return row != process.env.end() ? row->second : std::string();
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Makes rows of inputs, one after the other. For one thread.
class Rows {
 public:
  explicit Rows(Shared& shared) : shared_(shared), to_(shared.options) {}

  Batch take(std::span<const Input> inputs) {
    Batch out;
    out_ = &out;
    begun_.clear();
    for (const Input& input : inputs) take(input);
    return out;
  }

 private:
  void take(const Input& input) {
    out_->bytes += input.bytes;
    learned_ = nullptr;
    const auto is_listed = [this](const std::string& file) { return this->is_listed(file); };
    analysis::Alike alike;
    std::shared_ptr<const Known> like;
    auto read = analysis::read_report(input.path, {}, analysis::HomePaths::hidden,
                                      [&](const Report& report, std::string_view lines) {
                                        alike = analysis::alike_of(report, lines);
                                        like = shared_.judged.find(alike);
                                        if (like && !std::ranges::all_of(like->files, is_listed))
                                          like.reset();
                                        return like != nullptr;
                                      });
    if (const auto* report = std::get_if<Report>(&read); report != nullptr && report->linked)
      read = "is behind another user's symbolic link";
    if (const auto* why = std::get_if<std::string>(&read)) {
      if (!analysis::is_another_users_link(input.path) && add_scan(input.path)) {
        ++out_->counts.scans;
      } else {
        reject(without_user(input.path, input.owner), 0, *why);
        ++out_->counts.rejected;
      }
    } else {
      Report& report = std::get<Report>(read);
      if (!(like != nullptr ? like->complete : report.end.has_value()) &&
          now_s() - input.changed_ns / 1'000'000'000 < to_.settle_s) {
        ++out_->counts.unsettled;
        return;
      }
      if (like != nullptr)
        add(*like, begin(report, input.owner), alike);
      else
        judge(std::move(report), input.owner, alike);
      ++out_->counts.reports;
    }
    out_->taken.push_back(input.id);
  }

  void judge(Report&& report, uid_t owner, const analysis::Alike& alike) {
    Judgment judgment(std::move(report));
    judgment.analysis = judge_.judge(judgment.report);
    learned_ = &judgment.report;
    know_files(judgment);
    const Process process = begin(judgment.report, owner);
    for (std::size_t at = 0; at < judgment.files.size(); ++at)
      if (judgment.readable[at]) image_rows(judgment.report, judgment.report.objects[at], judgment.files[at]);
    const auto known = std::make_shared<const Known>(known_of(judgment));
    add(*known, process, analysis::values_of(judgment.report));
    learned_ = nullptr;
    if (const std::string& why = judge_.files().left_out(); !why.empty())
      reject(process.path, 0, "a file that it names " + why);
    else if (alike.key && analysis::has_places(judgment.report, alike))
      shared_.judged.add(known, alike,
                         judgment.analysis.findings.empty() && judgment.report.failures.empty());
  }

  /// What is a report's own, whatever it is like.
  struct Process {
    const analysis::ProcessRecord& record;
    std::string user, path;
  };
  Process begin(const Report& report, uid_t owner) {
    const analysis::ProcessRecord& process = report.process;
    Process out{process, user_of(report, owner), without_user(report.path, owner)};
    id_ = fmt::format("{}.{}.{}.{}", process.host, process.pid, process.start, process.time);
    // The owner is part of the key, so that one user's rows cannot replace another's.
    if (report.foreign) id_ += "." + (to_.hide_users ? out.user : std::to_string(owner));
    time_ = is_time(process.time) ? process.time : std::string();
    day_ = time_.empty() ? "unknown" : time_.substr(0, 10);
    return out;
  }

  void add(const Known& known, const Process& process, const analysis::Alike& values) {
    if (time_.empty())
      reject(process.path, process.record.line, "`process`: `time` is not a UTC time; ignored");
    process_row(known, process);
    std::vector<double> ms;
    for (std::size_t at = 0; at < known.load_of.size(); ++at) {
      ms.resize(std::max<std::size_t>(ms.size(), known.load_of[at] + 1));
      ms[known.load_of[at]] += values.ms[at];
    }
    const std::string id = to_json(id_);
    const RowPlaces places{.id = std::string_view(id).substr(1, id.size() - 2), .time = to_json(time_)};
    for (const auto& [table, lines] : known.rows) {
      Batch::Lines& to = out_->tables[{table, day_}];
      std::size_t next = 0;
      places.fill(lines.text, to.text, [&, is_load = table == Table::loads] {
        const std::size_t at = next++;
        return is_load ? to_json(ms[at]) : to_json(values.gpus[at / 2][at % 2]);
      });
      to.rows += lines.rows;
    }
    for (const analysis::ReportNote& note : known.notes) reject(process.path, note.line, note.text);
  }

  static Known known_of(const Judgment& of) {
    const Report& report = of.report;
    Known out;
    out.verdict = analysis::to_name(of.analysis.verdict);
    if (report.driver) {
      out.driver = report.driver->cuda_version;
      out.kernel_module = report.driver->kernel_module;
      out.simulated = report.driver->simulated;
    }
    constexpr unsigned kSignal = cli::exit_status::kSignalBase;
    if (report.exit)
      out.exit = report.exit->signal ? kSignal + *report.exit->signal : report.exit->status;
    else if (report.compiler)
      out.exit = report.compiler->status;
    out.modules = std::max<std::uint64_t>(report.end ? report.end->modules : 0, report.modules.size());
    out.failures = report.failures.size();
    out.dropped = report.missing + (report.end ? report.end->dropped : 0);
    out.complete = report.end.has_value();
    out.notes = report.notes;
    for (std::size_t at = 0; at < of.files.size(); ++at)
      if (of.readable[at]) out.files.emplace_back(of.files[at].id);
    for (const analysis::DeviceRecord& device : report.devices) device_row(device, out);
    load_rows(of, out);
    const std::map<std::uint64_t, std::size_t> explained = finding_rows(of.analysis, out);
    for (const analysis::FailureRecord& failure : report.failures) failure_row(of, failure, explained, out);
    kernel_rows(of, out);
    out.rows.shrink_to_fit();
    for (auto& [table, lines] : out.rows) lines.text.shrink_to_fit();
    return out;
  }

  /// The user of the process. For another user's report that is the file's owner, whatever the report says.
  /// it says. With KSHIM_PRIVATE what the report has instead, or what the export makes of the user id.
  std::string user_of(const Report& report, uid_t owner) {
    const std::string& said = report.process.uid;
    if (report.process.hidden && (!said.empty() || to_.key.empty())) return said;
    uid_t uid = owner;
    if (!report.foreign && !report.process.hidden)
      std::from_chars(said.data(), said.data() + said.size(), uid);
    if (!to_.hide_users) {
      const Users::User* user = shared_.users.find(uid);
      return user != nullptr ? user->name : fmt::format("{}", uid);
    }
    if (to_.key.empty()) return {};
    const auto hash = report::hmac_sha256(to_.key, std::to_string(uid));
    return {hash.data(), hash.size()};
  }

  /// A path without the name of the user, where users are hidden.
  std::string without_user(const std::string& path, uid_t owner) {
    const Users::User* user = to_.hide_users ? shared_.users.find(owner) : nullptr;
    if (user == nullptr) return path;
    const report::Person person{user->home, user->name};
    std::string out;
    report::RedactedPieces pieces(path, &person);
    for (std::string_view piece; pieces.next(piece);) out += piece;
    return out;
  }

  /// The files and plans of what `kshim scan` or `kshim analyze --format json` wrote; false where it is no
  /// such thing.
  bool add_scan(const std::string& path) {
    if (!path.ends_with(".json")) return false;
    const auto text = files::read_whole(path, kMaxScanBytes);
    const nlohmann::json scan = nlohmann::json::parse(text.value_or(""), nullptr, false);
    const auto text_of = [](const nlohmann::json& in, const char* key) {
      const auto found = in.is_object() ? in.find(key) : in.end();
      return found != in.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto count_of = [](const nlohmann::json& in, const char* key) {
      const auto found = in.find(key);
      return found != in.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
    };
    const auto list_of = [](const nlohmann::json& in, const char* key) {
      const auto found = in.is_object() ? in.find(key) : in.end();
      return found != in.end() && found->is_array() ? *found : nlohmann::json::array();
    };
    const auto texts_of = [](const nlohmann::json& list) {
      std::vector<std::string> out;
      for (const nlohmann::json& item : list)
        if (item.is_string()) out.push_back(item.get<std::string>());
      return out;
    };
    const std::string schema = text_of(scan, "schema");
    if (schema != "kshim-scan/1" && schema != "kshim-analysis/1") return false;
    day_ = today();
    for (const nlohmann::json& plan : list_of(scan, "fleet")) {
      const std::string path_of = text_of(plan, "object");
      const std::string build_id = text_of(plan, "build_id");
      if (path_of.empty()) continue;
      std::vector<std::string> archs;
      for (const nlohmann::json& row : list_of(plan.value("smallest", nlohmann::json()), "archs"))
        archs.push_back(text_of(row, "arch"));
      const std::string& file = build_id.empty() ? path_of : build_id;
      Row row(Table::plans);
      row.text(C::plans_row_id, file)
          .text(C::plans_file_id, file)
          .text(C::plans_path, path_of)
          .texts(C::plans_gpus, texts_of(list_of(plan, "gpus")))
          .texts(C::plans_smallest, archs)
          .text(C::plans_cmake, text_of(plan, "cmake"))
          .texts(C::plans_toolkits, texts_of(list_of(plan, "toolkits")));
      put(row, day_, out_->tables);
    }
    for (const nlohmann::json& object : list_of(scan, "objects")) {
      const std::string member = text_of(object, "member");
      const std::string place = text_of(object, "path") + (member.empty() ? "" : "/" + member);
      const std::string build_id = text_of(object, "build_id");
      const std::string owner = text_of(object, "package");
      const std::string_view package = owner;
      const std::size_t space = std::min(package.rfind(' '), package.size());
      const std::string sha256 = text_of(object, "sha256");
      const File file{build_id.empty() ? place : build_id,
                      place,
                      build_id,
                      package.substr(0, space),
                      space < package.size() ? package.substr(space + 1) : std::string_view(),
                      sha256};
      const auto rows = object.is_object() ? object.find("images") : object.end();
      if (file.id.empty() || rows == object.end() || !rows->is_array() || is_listed(file.id)) continue;
      std::vector<analysis::ImageEntry> images;
      for (const nlohmann::json& row : *rows) {
        if (row.is_object())
          images.push_back({text_of(row, "kind"), text_of(row, "arch"), text_of(row, "isa"),
                            count_of(row, "count"), count_of(row, "bytes")});
      }
      begin_file(file.id);
      entry_rows(file, images);
    }
    return true;
  }

  void reject(const std::string& path, std::uint64_t line, std::string_view why) {
    Row row(Table::rejected);
    row.text(C::rejected_row_id, fmt::format("{}:{}", path, line))
        .text(C::rejected_path, path)
        .text(C::rejected_reason, why);
    if (line != 0) row.integer(C::rejected_line, line);
    put(row, today(), out_->tables);
  }

  static std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
  }

  // A report may be a stranger's: only a day makes a folder, and a column of times holds times.
  static bool is_time(std::string_view text) {
    constexpr std::string_view kShape = "0000-00-00T00:00:00";
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.size() <= kShape.size() || text.back() != 'Z') return false;
    for (std::size_t at = 0; at < kShape.size(); ++at)
      if (kShape[at] == '0' ? !digit(text[at]) : text[at] != kShape[at]) return false;
    const std::string_view fraction = text.substr(kShape.size(), text.size() - kShape.size() - 1);
    if (!fraction.empty() && (fraction.size() == 1 || fraction.front() != '.' ||
                              !std::all_of(fraction.begin() + 1, fraction.end(), digit)))
      return false;
    const auto number = [&](std::size_t at) { return (text[at] - '0') * 10 + text[at + 1] - '0'; };
    const std::chrono::year_month_day day{std::chrono::year(number(0) * 100 + number(2)),
                                          std::chrono::month(static_cast<unsigned>(number(5))),
                                          std::chrono::day(static_cast<unsigned>(number(8)))};
    return day.ok() && number(11) < 24 && number(14) < 60 && number(17) < 60;
  }

  void process_row(const Known& known, const Process& of) {
    const analysis::ProcessRecord& process = of.record;
    Row row(Table::processes);
    row.text(C::processes_row_id, id_)
        .text(C::processes_time, time_)
        .text(C::processes_run, process.run)
        .text(C::processes_host, process.host)
        .integer(C::processes_pid, process.pid)
        .integer(C::processes_ppid, process.ppid)
        .integer(C::processes_rank, process.rank)
        .text(C::processes_user, of.user)
        .text(C::processes_job, first_set(process, "id", "SLURM_JOB_ID"))
        .text(C::processes_account, first_set(process, "account", "SLURM_JOB_ACCOUNT"))
        .text(C::processes_queue, first_set(process, "queue", "SLURM_JOB_PARTITION"))
        .text(C::processes_exe, process.exe)
        .texts(C::processes_argv, process.argv)
        .text(C::processes_shim, process.shim)
        .text(C::processes_driver, known.driver)
        .text(C::processes_kernel_module, known.kernel_module)
        .text(C::processes_verdict, known.verdict)
        .boolean(C::processes_complete, known.complete)
        .integer(C::processes_exit, known.exit)
        .integer(C::processes_modules, known.modules)
        .integer(C::processes_failures, known.failures)
        .integer(C::processes_dropped, known.dropped)
        .integer(C::processes_sample, known.failures == 0 ? process.sample.value_or(1) : 1)
        .text(C::processes_report, of.path);
    if (known.simulated) row.boolean(C::processes_simulated, *known.simulated);
    put(row, day_, out_->tables);
  }

  static void device_row(const analysis::DeviceRecord& device, Known& out) {
    Row row(Table::devices);
    row.id(C::devices_row_id, fmt::format("/device{}", device.ordinal))
        .id(C::devices_process_id)
        .integer(C::devices_ordinal, std::uint64_t{device.ordinal})
        .text(C::devices_name, device.name)
        .text(C::devices_compute_capability, device.compute_capability)
        .next(C::devices_uuid)
        .next(C::devices_pci);
    put(row, out);
  }

  void know_files(Judgment& row) {
    const std::vector<analysis::ObjectRecord>& objects = row.report.objects;
    row.packages.resize(objects.size());
    for (std::size_t at = 0; at < objects.size(); ++at) {
      const analysis::ObjectRecord& object = objects[at];
      File& file = row.files.emplace_back();
      file = {
          object.build_id.empty() ? object.path : object.build_id, object.path, object.build_id, {}, {}, {}};
      row.readable.push_back(object.images || judge_.files().find(object) != nullptr);
      if (const analysis::PackageRecord* package = row.index.package(object.id)) {
        file.package = package->name;
        file.version = package->version;
      } else if (auto found = judge_.files().package(object)) {
        row.packages[at] = {std::move(found->name), std::move(found->version)};
        std::tie(file.package, file.version) = row.packages[at];
      }
    }
  }
  static File file_of(const Judgment& row, std::optional<std::uint64_t> id) {
    const analysis::ObjectRecord* object = row.index.object(id);
    return object == nullptr ? File()
                             : row.files[static_cast<std::size_t>(object - row.report.objects.data())];
  }

  bool is_listed(std::string_view id) {
    if (seen_.contains(id)) return true;
    if (begun_.contains(id)) return true;
    if (!shared_.listed.contains(id)) return false;
    if (seen_.size() < ListedFiles::kMax) seen_.emplace(id);
    return true;
  }
  void begin_file(std::string_view id) {
    begun_.emplace(id);
    out_->files.emplace_back(id, Batch::Tables());
  }

  void image_rows(const Report& report, const analysis::ObjectRecord& object, const File& file) {
    if (is_listed(file.id)) return;
    if (object.images) {
      begin_file(file.id);
      entry_rows(file, *object.images);
      return;
    }
    if (learned_ != &report) {
      judge_.files().forget();
      judge_.files().learn(report);
      learned_ = &report;
    }
    if (const analysis::ObjectFile* found = judge_.files().find(object)) {
      begin_file(file.id);
      std::vector<image::Candidate> candidates;
      for (const analysis::ImageCount& image : found->image_counts()) {
        const image::Candidate& candidate = image.candidate;
        image_row(file, image::to_name(candidate.kind),
                  std::string(image::to_name(candidate.kind, candidate.arch).view()),
                  candidate.kind == image::ImageKind::ptx ? std::string(image::to_name(candidate.isa).view())
                                                          : std::string(),
                  image.count, image.bytes);
        candidates.push_back(candidate);
      }
      if (!candidates.empty()) serves_rows(file, candidates);
    }
  }

  void entry_rows(const File& file, const std::vector<analysis::ImageEntry>& images) {
    std::vector<image::Candidate> candidates;
    for (const analysis::ImageEntry& image : images) {
      image_row(file, image.kind, image.arch, image.isa, image.count, image.bytes);
      const auto kind = image::parse_kind(image.kind);
      const auto arch = image::parse_arch(image.arch);
      if (kind && arch)
        candidates.push_back({*kind, *arch, image::parse_version(image.isa).value_or(image::Version{})});
    }
    if (!candidates.empty()) serves_rows(file, candidates);
  }

  /// The earliest GPU whose machine code each one runs, in the order of the table of GPUs.
  static std::vector<std::string> families() {
    std::vector<std::string> out;
    for (const image::ComputeCapabilityInfo& gpu : image::compat_tables().gpus)
      out.push_back(family_of(gpu.cc));
    return out;
  }
  static std::string family_of(image::ComputeCapability gpu) {
    image::ComputeCapability out = gpu;
    for (const image::ComputeCapabilityInfo& other : image::compat_tables().gpus) {
      const std::array build = {
          image::Candidate{image::ImageKind::cubin, {other.cc, image::Suffix::none}, {}}};
      if (image::select_image(build, {.device = gpu, .driver = {}, .jit = {}}).choice == image::Choice::sass)
        out = std::min(out, other.cc);
    }
    return std::string(image::to_name(out).view());
  }

  void serves_rows(const File& file, const std::vector<image::Candidate>& candidates) {
    static const std::vector<std::string> kFamilies = families();
    auto family = kFamilies.begin();
    for (const image::ComputeCapabilityInfo& gpu : image::compat_tables().gpus) {
      const image::Selection selection =
          image::select_image(candidates, {.device = gpu.cc, .driver = {}, .jit = {}});
      constexpr std::array kHow = {"sass", "jit", "none"};
      const std::string capability(image::to_name(gpu.cc).view());
      Row row(Table::serves);
      row.text(C::serves_row_id, fmt::format("{}/{}", file.id, capability))
          .text(C::serves_file_id, file.id)
          .text(C::serves_compute_capability, capability)
          .text(C::serves_family, *family++)
          .text(C::serves_how, kHow.at(static_cast<std::size_t>(selection.choice)));
      put(row, day_, out_->files.back().second);
    }
  }

  void image_row(const File& file, std::string_view kind, const std::string& arch, const std::string& isa,
                 std::uint64_t count, std::uint64_t bytes) {
    Row row(Table::images);
    row.text(C::images_row_id, fmt::format("{}/{}/{}/{}", file.id, kind, arch, isa))
        .text(C::images_file_id, file.id)
        .text(C::images_build_id, file.build_id)
        .text(C::images_sha256, file.sha256)
        .text(C::images_path, file.path)
        .text(C::images_package, file.package)
        .text(C::images_version, file.version)
        .text(C::images_kind, kind)
        .text(C::images_arch, arch)
        .text(C::images_isa, isa)
        .integer(C::images_count, count)
        .integer(C::images_bytes, bytes);
    if (const auto parsed = image::parse_arch(arch)) {
      row.number(C::images_capability, parsed->cc.major + parsed->cc.minor / 10.0);
      if (parsed->suffix != image::Suffix::none)
        row.text(C::images_suffix, std::string_view(arch).substr(arch.size() - 1));
    }
    put(row, day_, out_->files.back().second);
  }

  static void load_rows(const Judgment& of, Known& out) {
    struct Sum {
      File file;
      std::uint64_t count = 0;
      std::uint32_t number = 0;
      std::optional<std::uint64_t> device;
      std::string selected;
      bool one_device = true, one_image = true;
    };
    std::map<std::tuple<std::string_view, int, bool>, Sum> sums;
    std::vector<const Sum*> of_module;
    for (const analysis::ModuleRecord& module : of.report.modules) {
      File file = file_of(of, module.object);
      if (file.id.empty()) file.id = module.content_hash;
      Sum& sum = sums[{file.id, module.result, module.jit}];
      if (sum.count == 0) {
        sum.file = file;
        sum.device = module.device;
        sum.selected = module.selected;
      }
      sum.one_device = sum.one_device && sum.device == module.device;
      sum.one_image = sum.one_image && sum.selected == module.selected;
      ++sum.count;
      of_module.push_back(&sum);
    }
    std::uint32_t number = 0;
    for (auto& [key, sum] : sums) {
      const auto& [file_id, result, jit] = key;
      sum.number = number++;
      Row row(Table::loads);
      row.id(C::loads_row_id, fmt::format("/load/{}/{}/{}", file_id, result, jit ? "jit" : "sass"))
          .id(C::loads_process_id)
          .text(C::loads_file_id, sum.file.id)
          .text(C::loads_path, sum.file.path)
          .text(C::loads_package, sum.file.package)
          .text(C::loads_version, sum.file.version)
          .integer(C::loads_result, static_cast<std::uint64_t>(result))
          .boolean(C::loads_jit, jit)
          .integer(C::loads_count, sum.count)
          .next(C::loads_ms);
      if (sum.one_device) row.integer(C::loads_device, sum.device);
      if (sum.one_image) row.text(C::loads_selected, sum.selected);
      put(row, out);
    }
    out.load_of.reserve(of_module.size());
    for (const Sum* sum : of_module) out.load_of.push_back(sum->number);
  }

  /// Which finding explains the failure record on a line.
  static std::map<std::uint64_t, std::size_t> finding_rows(const analysis::Analysis& analysis, Known& out) {
    std::map<std::uint64_t, std::size_t> explained;
    for (std::size_t number = 0; number < analysis.findings.size(); ++number) {
      const analysis::Finding& finding = analysis.findings[number];
      for (const analysis::ReportLine& failure : finding.failures) explained.emplace(failure.line, number);
      Row row(Table::findings);
      row.id(C::findings_row_id, finding_id(number))
          .id(C::findings_process_id)
          .time(C::findings_time)
          .text(C::findings_cause, analysis::row_of(finding.cause).name)
          .text(C::findings_severity, analysis::to_name(finding.severity))
          .number(C::findings_confidence, finding.confidence)
          .text(C::findings_file_id, finding.build_id.empty() ? finding.object : finding.build_id)
          .text(C::findings_path, finding.object)
          .text(C::findings_package, finding.package.name)
          .text(C::findings_version, finding.package.version)
          .text(C::findings_kernel, finding.failed_kernel)
          .text(C::findings_need, finding.need)
          .texts(C::findings_have, finding.have)
          .integer(C::findings_count, finding.count);
      if (finding.code && *finding.code >= 0) row.integer(C::findings_code, finding.code);
      bool hypothetical = !finding.devices.empty();
      for (const analysis::Device& device : finding.devices)
        hypothetical = hypothetical && device.kind != analysis::Device::Kind::present;
      row.boolean(C::findings_hypothetical, hypothetical);
      if (!finding.devices.empty() && finding.devices.front().cc)
        row.text(C::findings_compute_capability, image::to_name(*finding.devices.front().cc).view());
      if (!finding.fixes.empty()) {
        row.text(C::findings_fix, finding.fixes.front().id)
            .text(C::findings_command, analysis::join(finding.fixes.front().commands, "\n"));
      }
      if (!finding.where.empty() && !finding.where.front().file.empty())
        row.text(C::findings_where_file, finding.where.front().file)
            .integer(C::findings_where_line, std::uint64_t{finding.where.front().line});
      put(row, out);
    }
    return explained;
  }

  static std::string finding_id(std::size_t number) { return fmt::format("/finding{}", number); }

  static void failure_row(const Judgment& of, const analysis::FailureRecord& failure,
                          const std::map<std::uint64_t, std::size_t>& explained, Known& out) {
    const analysis::ModuleRecord* module = of.index.module(failure.module);
    const File file = file_of(of, failure.object ? failure.object : module ? module->object : std::nullopt);
    Row row(Table::failures);
    row.id(C::failures_row_id, fmt::format("/failure{}", failure.id))
        .id(C::failures_process_id)
        .time(C::failures_time)
        .text(C::failures_stage, failure.stage)
        .text(C::failures_kernel, failure.kernel)
        .text(C::failures_file_id, file.id)
        .text(C::failures_path, file.path)
        .text(C::failures_build_id, file.build_id)
        .text(C::failures_package, file.package)
        .text(C::failures_version, file.version)
        .integer(C::failures_count, failure.count);
    const auto finding = explained.find(failure.line);
    if (finding != explained.end()) {
      row.id(C::failures_finding_id, finding_id(finding->second))
          .text(C::failures_cause, analysis::row_of(of.analysis.findings[finding->second].cause).name);
    }
    if (!failure.layers.empty()) {
      if (failure.layers.front().code >= 0)
        row.integer(C::failures_code, static_cast<std::uint64_t>(failure.layers.front().code));
      row.text(C::failures_name, failure.layers.front().name);
    }
    if (const analysis::DeviceRecord* device = of.index.device(failure.device))
      row.text(C::failures_compute_capability, device->compute_capability);
    if (of.report.driver) row.text(C::failures_driver, of.report.driver->cuda_version);
    if (!failure.python.empty())
      row.text(C::failures_python_file, failure.python.front().file)
          .integer(C::failures_python_line, std::uint64_t{failure.python.front().line});
    put(row, out);
  }

  static void kernel_rows(const Judgment& of, Known& out) {
    std::size_t number = 0;
    for (const analysis::CoverageRecord& kernel : of.report.coverage) {
      const analysis::ModuleRecord* module = of.index.module(kernel.module);
      File file = file_of(of, kernel.object);
      if (file.id.empty() && module != nullptr) file.id = module->content_hash;
      Row row(Table::kernels);
      row.id(C::kernels_row_id, fmt::format("/kernel{}", number++))
          .id(C::kernels_process_id)
          .text(C::kernels_kernel, kernel.kernel)
          .text(C::kernels_file_id, file.id)
          .integer(C::kernels_launches, kernel.launches);
      put(row, out);
    }
  }

  static void put(const Row& row, Known& to) {
    if (to.rows.empty() || to.rows.back().first != row.table())
      to.rows.emplace_back(row.table(), Batch::Lines());
    Batch::Lines& lines = to.rows.back().second;
    row.add_to(lines.text);
    ++lines.rows;
  }
  static void put(const Row& row, const std::string& day, Batch::Tables& to) {
    Batch::Lines& lines = to[{row.table(), day}];
    row.add_to(lines.text);
    ++lines.rows;
  }

  static analysis::Options options() {
    analysis::Options out;
    out.keep_private = true;
    return out;
  }
  Shared& shared_;
  const Options& to_;
  Batch* out_ = nullptr;
  std::string id_;
  std::string time_;  ///< of the report at hand; empty where it is none
  std::string day_;
  analysis::Options options_ = options();
  analysis::EachReport judge_{options_};
  const Report* learned_ = nullptr;           ///< that judge_.files() speaks of
  std::set<std::string, std::less<>> seen_;   ///< files that are listed
  std::set<std::string, std::less<>> begun_;  ///< files of this batch
};

/// What to export, one after the other: of the report files those that are not known.
class Inputs {
 public:
  Inputs(const std::vector<fs::path>& paths, std::span<const std::uint64_t> of_before,
         std::vector<std::string>& notes)
      : known_(of_before) {
    std::vector<fs::path> scans, others;
    for (const fs::path& path : paths) (path.extension() == ".json" ? scans : others).push_back(path);
    // A scan may know more of a file than reports do.
    walks_.emplace_back(others, notes);
    walks_.emplace_back(scans, notes);
    std::error_code ignored;
    here_ = fs::current_path(ignored).string() + '/';
  }
  std::optional<Input> next() {
    while (!walks_.empty()) {
      std::optional<analysis::ReportFile> file = walks_.back().next();
      if (!file) {
        walks_.pop_back();
        continue;
      }
      if (!file->path.starts_with('/')) file->path.insert(0, here_);
      const std::uint64_t id =
          content_hash(bytes_of(fmt::format("{}\n{}\n{}", file->path, file->bytes, file->changed_ns)));
      if (!std::ranges::binary_search(known_, id)) return Input{*std::move(file), id};
      ++known;
    }
    return std::nullopt;
  }
  std::uint64_t known = 0;  ///< so many were left out

 private:
  std::span<const std::uint64_t> known_;
  std::vector<analysis::ReportWalk> walks_;  ///< the next one last
  std::string here_;
};

/// Writes which inputs were exported, in several small files.
class Manifests {
 public:
  Manifests(TableFiles& files, std::string name) : files_(files), name_(std::move(name)) {}
  void add(std::span<const std::uint64_t> inputs) {
    inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
    if (inputs_.size() >= kMaxInputs) write(fmt::format("{}.{}.json", name_, ++parts_), {});
  }
  void finish(const std::map<std::string_view, std::uint64_t>& rows) { write(name_ + ".json", rows); }

 private:
  static constexpr std::size_t kMaxInputs = 65536;
  void write(const std::string& name, const std::map<std::string_view, std::uint64_t>& rows) {
    nlohmann::json counts = nlohmann::json::object();
    for (const auto& [table, count] : rows) counts[std::string(table)] = count;
    const nlohmann::json manifest = {{"schema", "kshim-facts/1"},
                                     {"host", host_name()},
                                     {"inputs", std::exchange(inputs_, {})},
                                     {"rows", std::move(counts)}};
    files_.add_manifest(name, manifest.dump() + "\n");
  }
  TableFiles& files_;
  std::string name_;
  std::vector<std::uint64_t> inputs_;
  unsigned parts_ = 0;
};

/// Makes rows in several threads. They are written in the order of the inputs, each batch by the thread that
/// finds it next.
class Threads {
 public:
  Threads(Inputs& inputs, Shared& shared, TableFiles& files, Manifests& manifests, std::uint64_t total)
      : inputs_(inputs),
        next_(inputs.next()),
        shared_(shared),
        files_(files),
        manifests_(manifests),
        total_(total) {}

  Result run() {
    constexpr unsigned kMax = 8;  // each has what it knows of files and packages for itself
    jobs_ = shared_.options.jobs != 0 ? shared_.options.jobs
                                      : std::clamp(std::thread::hardware_concurrency(), 1U, kMax);
    std::vector<std::jthread> threads;
    allow_threads(jobs_ - 1);
    try {
      while (threads.size() + 1 < jobs_) threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more than these
    }
    work();
    threads.clear();
    if (failed_) std::rethrow_exception(failed_);
    return sum_;
  }

 private:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 10;  // of a batch of several
  static constexpr std::size_t kMaxReports = 64;
  static constexpr std::size_t kMaxAhead = 2;  // batches a thread
  static constexpr std::uint64_t kMaxBytesAhead = std::uint64_t{64} << 20;

  void work() noexcept {
    try {
      Rows rows(shared_);
      for (std::unique_lock lock(mutex_);;) {
        changed_.wait(lock, [&] { return failed_ || !next_ || has_room(); });
        if (failed_ || !next_) return;
        const std::vector<Input> inputs = begin();
        const std::size_t number = begun_++;
        lock.unlock();
        Batch batch = rows.take(inputs);
        lock.lock();
        ready_.emplace(number, std::move(batch));
        write(lock);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_) failed_ = std::current_exception();
      changed_.notify_all();
    }
  }

  bool has_room() const {
    return begun_ == written_ ||
           (begun_ - written_ < kMaxAhead * jobs_ && bytes_ahead_ + next_->bytes <= kMaxBytesAhead);
  }

  std::vector<Input> begin() {
    std::vector<Input> out;
    for (std::uint64_t bytes = 0;
         next_ && out.size() < kMaxReports && (out.empty() || bytes + next_->bytes <= kMaxBytes);
         next_ = inputs_.next()) {
      bytes += next_->bytes;
      bytes_ahead_ += next_->bytes;
      out.push_back(*std::move(next_));
    }
    return out;
  }

  /// What is ready, unless another thread does.
  void write(std::unique_lock<std::mutex>& lock) {
    if (writing_) return;
    writing_ = true;
    for (auto at = ready_.begin(); at != ready_.end() && at->first == written_; at = ready_.begin()) {
      const Batch batch = std::move(at->second);
      ready_.erase(at);
      lock.unlock();
      write(batch);
      lock.lock();
      bytes_ahead_ -= batch.bytes;
      ++written_;
      changed_.notify_all();
    }
    writing_ = false;
  }

  void write(const Batch& batch) {
    write(batch.tables);
    for (const auto& [id, tables] : batch.files)
      if (shared_.listed.add(id)) write(tables);
    manifests_.add(batch.taken);
    bytes_ += batch.bytes;
    sum_.reports += batch.counts.reports;
    sum_.unsettled += batch.counts.unsettled;
    sum_.scans += batch.counts.scans;
    sum_.rejected += batch.counts.rejected;
    if (shared_.options.progress) shared_.options.progress(bytes_, total_);
  }
  void write(const Batch::Tables& tables) {
    for (const auto& [key, lines] : tables) files_.add(key.first, key.second, lines.text, lines.rows);
  }

  Inputs& inputs_;
  std::optional<Input> next_;
  Shared& shared_;
  TableFiles& files_;
  Manifests& manifests_;
  std::uint64_t total_;
  unsigned jobs_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0, written_ = 0;  ///< batches
  std::uint64_t bytes_ahead_ = 0;        ///< of inputs that were begun and not written
  std::map<std::size_t, Batch> ready_;   ///< by number
  bool writing_ = false;
  std::exception_ptr failed_;
  Result sum_;               ///< of what was written
  std::uint64_t bytes_ = 0;  ///< of its inputs
};

}  // namespace

void Exporter::read_manifests() {
  std::error_code error;
  for (fs::directory_iterator walk(options_.folder / "manifest", error), end; !error && walk != end;
       walk.increment(error)) {
    if (walk->path().extension() != ".json" || !manifests_.insert(walk->path().filename().string()).second)
      continue;
    const files::OpenFile file = files::open_to_read(walk->path());
    // What it names as known is not read.
    if (report::is_another_user(file.status.st_uid, ::geteuid())) continue;
    const auto text = files::read_whole(file, kMaxManifestBytes);
    const nlohmann::json manifest = nlohmann::json::parse(text.value_or(""), nullptr, false);
    if (!manifest.is_object() || manifest.value("host", nlohmann::json()) != host_name()) continue;
    const nlohmann::json inputs = manifest.value("inputs", nlohmann::json::array());
    for (const nlohmann::json& input : inputs)
      if (input.is_number_unsigned()) known_.push_back(input.get<std::uint64_t>());
  }
  std::ranges::sort(known_);
}

Result Exporter::run(const std::vector<fs::path>& paths) {
  Result result;
  read_manifests();
  std::uint64_t total = 0;
  const std::string host = host_name();
  std::string name;
  // Twice, because the names of a million reports would take more memory than all else.
  Inputs found(paths, known_, result.notes);
  while (const std::optional<Input> input = found.next()) {
    total += input->bytes;
    name = hash_of(fmt::format("{}{}{:016x}", host, name, input->id));
  }
  result.known = found.known;
  if (name.empty()) return result;
  TableFiles files(options_.folder, name, options_.zstd);
  Shared shared{options_};
  std::vector<std::string> ignored;
  Inputs inputs(paths, known_, ignored);
  Manifests manifests(files, name);
  Result done = Threads(inputs, shared, files, manifests, total).run();
  done.known = found.known;
  done.notes = std::move(result.notes);
  if (done.reports + done.scans + done.rejected == 0) return done;
  manifests.finish(files.rows());
  files.finish();
  done.rows = files.rows();
  return done;
}

}  // namespace kshim::exports
