// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/export.h"

#include <fmt/chrono.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "analyzer/advise/advice.h"
#include "analyzer/core/foreign_json.h"
#include "analyzer/core/memory_limit.h"
#include "analyzer/core/user_error.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/export/table_files.h"
#include "analyzer/input/report/alike.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/report_files.h"
#include "kshim/base/hash.h"
#include "kshim/files/open_file.h"
#include "kshim/image/compute_capability.h"
#include "kshim/report/hmac.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::exports {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxScanBytes = std::size_t{1} << 30;

struct Input : ReportFile {
  std::uint64_t id = 0;
};
/// A file as a report or a scan names it.
struct File {
  std::string id, path, build_id, package, version, sha256 = {};
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
    std::vector<std::uint32_t> places = {};  ///< where a value of each report goes into the text
  };
  using Tables = std::map<std::pair<Table, std::string>, Lines>;  ///< by table and day
  Tables tables;
  std::vector<std::pair<std::string, Tables>> files;  ///< by id: written where ListedFiles has none of it
  std::vector<std::uint64_t> taken;
  ExportResult counts;
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
  std::vector<ReportNote> notes;
};

/// A cache of what is known of reports. One like an earlier one is neither judged nor read whole. What is
/// judged depends on files of this machine, too, and an export takes them to stay as they are.
class Judged {
 public:
  std::shared_ptr<const Known> find(const Alike& alike) {
    const std::lock_guard lock(mutex_);
    for (const auto* rows : {&late_, &early_})
      for (const auto& key : {alike.key, alike.key_with_program})
        if (const auto row = key ? rows->find(*key) : rows->end(); row != rows->end()) return row->second;
    return nullptr;
  }
  void add(std::shared_ptr<const Known> known, const Alike& alike, bool needs_program) {
    const auto& key = needs_program ? alike.key_with_program : alike.key;
    std::size_t weight = sizeof(Known) + known->load_of.size() * sizeof(known->load_of.front());
    for (const auto& [table, lines] : known->rows)
      weight += sizeof lines + lines.text.size() + lines.places.size() * sizeof lines.places.front();
    for (const std::string& file : known->files) weight += sizeof file + file.size();
    const std::lock_guard lock(mutex_);
    if (weight_ + weight > kMaxBytes / 2) early_ = std::exchange(late_, {}), weight_ = 0;
    if (late_.insert_or_assign(*key, std::move(known)).second) weight_ += weight;
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Hash {
    std::size_t operator()(const Alike::Key& key) const { return key.front(); }
  };
  using Rows = std::unordered_map<Alike::Key, std::shared_ptr<const Known>, Hash>;
  std::mutex mutex_;
  Rows late_, early_;       ///< the early ones go when there is no room for more
  std::size_t weight_ = 0;  ///< of the late ones
};

/// A report and what was found.
struct Judgment {
  explicit Judgment(Report&& of) : report(std::move(of)), index(report) {}
  Report report;
  ReportIndex index;
  Analysis analysis;
  std::vector<File> files;     ///< of the objects
  std::vector<bool> readable;  ///< whether their images are known
};

/// What all threads of an export use.
struct Shared {
  const ExportRequest& options;
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
std::string first_set(const ProcessRecord& process, const char* key, const char* variable) {
  if (const auto row = process.job.find(key); row != process.job.end()) return row->second;
  const auto row = process.env.find(variable);
  return row != process.env.end() ? row->second : std::string();
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
    const bool theirs = report::is_another_user(input.owner, ::geteuid());
    theirs_ = theirs ? "." + owner_key(input.owner) : std::string();
    const auto is_listed = [this](const std::string& file) { return this->is_listed(file); };
    Alike alike;
    std::shared_ptr<const Known> like;
    auto read =
        read_report(input.path, {}, HomePaths::hidden, [&](const Report& report, std::string_view lines) {
          alike = alike_of(report, lines);
          if (!theirs_.empty()) {  // its rows name files of its owner's
            for (auto* key : {&alike.key, &alike.key_with_program})
              if (*key) (**key)[0] ^= content_hash(bytes_of(theirs_));
          }
          like = shared_.judged.find(alike);
          if (like && !std::ranges::all_of(like->files, is_listed)) like.reset();
          return like != nullptr;
        });
    if (const auto* report = std::get_if<Report>(&read); report != nullptr && report->linked)
      read = "is behind another user's symbolic link";
    if (const auto* why = std::get_if<std::string>(&read)) {
      if (!is_another_users_link(input.path) && add_scan(input.path)) {
        ++out_->counts.scans;
      } else {
        reject(without_user(input.path, input.owner), 0, *why);
        ++out_->counts.rejected;
      }
    } else {
      Report& report = std::get<Report>(read);
      if (!(like != nullptr ? like->complete : report.end.has_value()) &&
          std::time(nullptr) - input.changed_ns / 1'000'000'000 < to_.settle_s) {
        ++out_->counts.unsettled;
        return;
      }
      if (like != nullptr)
        add(*like, begin(report, input), alike);
      else
        judge(std::move(report), input, alike);
      ++out_->counts.reports;
    }
    out_->taken.push_back(input.id);
  }

  void judge(Report&& report, const Input& input, const Alike& alike) {
    Judgment judgment(std::move(report));
    judgment.analysis = judge_.judge(judgment.report);
    know_files(judgment);
    const Process process = begin(judgment.report, input);
    for (std::size_t at = 0; at < judgment.files.size(); ++at)
      if (judgment.readable[at]) image_rows(judgment.report.objects[at], judgment.files[at]);
    const auto known = std::make_shared<const Known>(known_of(judgment));
    add(*known, process, values_of(judgment.report));
    if (const std::string& why = judge_.files().left_out(); !why.empty())
      reject(process.path, 0, "a file that it names " + why);
    else if (alike.key && has_places(judgment.report, alike))
      shared_.judged.add(known, alike, needs_program(judgment));
  }

  /// Whether a row depends on which program it was.
  static bool needs_program(const Judgment& of) {
    const std::string program = command_line_of(of.report.process);
    return std::ranges::any_of(of.analysis.findings, [&](const Finding& finding) {
      return of.report.foreign || names_program(finding.fixes, program);
    });
  }

  /// What is a report's own, whatever it is like.
  struct Process {
    const ProcessRecord& record;
    std::string user, path;
  };
  Process begin(const Report& report, const Input& input) {
    const ProcessRecord& process = report.process;
    const uid_t owner = input.owner;
    Process out{process, user_of(report, owner), without_user(report.path, owner)};
    id_ = fmt::format("{}.{}.{}.{}", process.host, process.pid, process.start, process.time);
    id_ += theirs_;
    time_ = is_time(process.time) ? process.time : std::string();
    const bool believed = !time_.empty() && (theirs_.empty() || is_near(time_, input.arrived_s));
    day_ = believed ? time_.substr(0, 10) : kNoDay;
    return out;
  }

  void add(const Known& known, const Process& process, const Alike& values) {
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
      places.fill(lines.text, lines.places, to.text, [&, is_load = table == Table::loads] {
        const std::size_t at = next++;
        return is_load ? to_json(ms[at]) : to_json(values.gpus[at / 2][at % 2]);
      });
      to.rows += lines.rows;
    }
    for (const ReportNote& note : known.notes) reject(process.path, note.line, note.text);
  }

  Known known_of(const Judgment& of) const {
    const Report& report = of.report;
    Known out;
    out.verdict = to_name(of.analysis.verdict);
    if (report.driver) {
      out.driver = report.driver->cuda_version;
      out.kernel_module = report.driver->kernel_module;
      out.simulated = report.driver->simulated;
    }
    constexpr unsigned kSignal = exit_status::kSignalBase;
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
      if (of.readable[at]) out.files.push_back(of.files[at].id);
    for (const DeviceRecord& device : report.devices) device_row(device, out);
    load_rows(of, out);
    const std::map<std::uint64_t, std::size_t> explained = finding_rows(of.analysis, out);
    for (const FailureRecord& failure : report.failures) failure_row(of, failure, explained, out);
    kernel_rows(of, out);
    out.rows.shrink_to_fit();
    for (auto& [table, lines] : out.rows) {
      lines.text.shrink_to_fit();
      lines.places = places_in(lines.text);
    }
    return out;
  }

  /// The user of the process. For another user's report that is the file's owner, whatever the report says.
  /// With KSHIM_PRIVATE what the report has instead, or what the export makes of the user id.
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

  /// What tells owners of reports apart in keys.
  std::string owner_key(uid_t owner) const {
    if (!to_.hide_users) return std::to_string(owner);
    if (to_.key.empty()) return {};
    const auto hash = report::hmac_sha256(to_.key, std::to_string(owner));
    return {hash.data(), hash.size()};
  }

  /// Another user's report invents no day: a process began within a month before its report came here.
  static bool is_near(std::string_view time, std::int64_t arrived_s) {
    const auto number = [&](std::size_t at) { return (time[at] - '0') * 10 + time[at + 1] - '0'; };
    const std::chrono::sys_days day = std::chrono::year_month_day{
        std::chrono::year(number(0) * 100 + number(2)), std::chrono::month(static_cast<unsigned>(number(5))),
        std::chrono::day(static_cast<unsigned>(number(8)))};
    const std::chrono::sys_days arrived =
        std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(arrived_s)));
    return day <= arrived + std::chrono::days(1) && day + std::chrono::days(31) >= arrived;
  }

  /// A path without the name of the user, where users are hidden.
  std::string without_user(const std::string& path, uid_t owner) {
    const Users::User* user = to_.hide_users ? shared_.users.find(owner) : nullptr;
    if (user == nullptr) return path;
    const report::Person person{user->home, user->name};
    std::string out;
    report::RedactedPieces pieces(path, report::Content::identifier, &person);
    for (std::string_view piece; pieces.next(piece);) out += piece;
    return out;
  }

  /// The files and plans of what `kshim scan` or `kshim analyze --format json` wrote; false where it is no
  /// such thing.
  bool add_scan(const std::string& path) {
    if (!path.ends_with(".json")) return false;
    const auto text = files::read_whole(path, kMaxScanBytes);
    const nlohmann::json scan = nlohmann::json::parse(text.value_or(""), nullptr, false);
    const auto texts_of = [](const nlohmann::json& list) {
      std::vector<std::string> out;
      for (const nlohmann::json& item : list)
        if (item.is_string()) out.push_back(item.get<std::string>());
      return out;
    };
    const std::string schema = string_at(scan, "schema");
    if (schema != "kshim-scan/1" && schema != "kshim-analysis/1") return false;
    day_ = today();
    for (const nlohmann::json& plan : list_at(scan, "fleet")) {
      const std::string path_of = string_at(plan, "object");
      const std::string build_id = string_at(plan, "build_id");
      if (path_of.empty()) continue;
      std::vector<std::string> archs;
      for (const nlohmann::json& row : list_at(part_of(plan, "smallest"), "archs"))
        archs.push_back(string_at(row, "arch"));
      const std::string file = (build_id.empty() ? path_of : build_id) + theirs_;
      put(Row(plans::row_id(file), plans::file_id(file), plans::path(path_of), plans::smallest(archs),
              plans::gpus(texts_of(list_at(plan, "gpus"))), plans::cmake(string_at(plan, "cmake")),
              plans::toolkits(texts_of(list_at(plan, "toolkits")))),
          day_, out_->tables);
    }
    for (const nlohmann::json& object : list_at(scan, "objects")) {
      const std::string member = string_at(object, "member");
      const std::string place = string_at(object, "path") + (member.empty() ? "" : "/" + member);
      const std::string build_id = string_at(object, "build_id");
      const std::string owner = string_at(object, "package");
      const std::size_t space = std::min(owner.rfind(' '), owner.size());
      const File file{(build_id.empty() ? place : build_id) + theirs_,
                      place,
                      build_id,
                      owner.substr(0, space),
                      space < owner.size() ? owner.substr(space + 1) : std::string(),
                      string_at(object, "sha256")};
      const nlohmann::json& rows = part_of(object, "images");
      if (place.empty() || !rows.is_array() || is_listed(file.id)) continue;
      std::vector<ImageEntry> entries;
      for (const nlohmann::json& row : rows) {
        if (row.is_object())
          entries.push_back({string_at(row, "kind"), string_at(row, "arch"), string_at(row, "isa"),
                             number_at(row, "count"), number_at(row, "bytes")});
      }
      begin_file(file.id);
      entry_rows(file, entries);
    }
    return true;
  }

  void reject(const std::string& path, std::uint64_t line, std::string_view why) {
    put(Row(rejected::row_id(fmt::format("{}:{}", path, line)), rejected::path(path), rejected::reason(why),
            rejected::line(line == 0 ? std::nullopt : std::optional(line))),
        today(), out_->tables);
  }

  static std::string today() { return fmt::format("{:%F}", fmt::gmtime(std::time(nullptr))); }

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
    const ProcessRecord& process = of.record;
    const std::uint64_t sample = known.failures == 0 ? process.sample.value_or(1) : 1;
    put(Row(processes::row_id(id_), processes::time(time_), processes::run(process.run),
            processes::host(process.host), processes::pid(process.pid), processes::ppid(process.ppid),
            processes::rank(process.rank), processes::user(of.user),
            processes::job(first_set(process, "id", "SLURM_JOB_ID")),
            processes::account(first_set(process, "account", "SLURM_JOB_ACCOUNT")),
            processes::queue(first_set(process, "queue", "SLURM_JOB_PARTITION")), processes::exe(process.exe),
            processes::argv(process.argv), processes::shim(process.shim), processes::driver(known.driver),
            processes::kernel_module(known.kernel_module), processes::simulated(known.simulated),
            processes::verdict(known.verdict), processes::complete(known.complete),
            processes::exit(known.exit), processes::modules(known.modules),
            processes::failures(known.failures), processes::dropped(known.dropped), processes::sample(sample),
            processes::report(of.path)),
        day_, out_->tables);
  }

  static void device_row(const DeviceRecord& device, Known& out) {
    put(Row(devices::row_id(Slot::id, fmt::format("/device{}", device.ordinal)),
            devices::process_id(Slot::id), devices::ordinal(device.ordinal), devices::name(device.name),
            devices::compute_capability(device.compute_capability), devices::uuid(Slot::next),
            devices::pci(Slot::next)),
        out);
  }

  /// The build id is what the report says, and a file's author writes it: another user's report says it of
  /// that user's files alone, so that its rows replace nobody's.
  std::string file_key(const std::string& build_id, const std::string& path) const {
    const std::string& id = build_id.empty() ? path : build_id;
    return id.empty() ? id : id + theirs_;
  }

  void know_files(Judgment& row) {
    for (const ObjectRecord& object : row.report.objects) {
      File file{file_key(object.build_id, object.path), object.path, object.build_id, {}, {}};
      row.readable.push_back(object.images || judge_.files().find(object) != nullptr);
      if (const PackageRecord* package = row.index.package(object.id))
        std::tie(file.package, file.version) = std::tie(package->name, package->version);
      else if (const auto found = judge_.files().package(object))
        std::tie(file.package, file.version) = std::tie(found->name, found->version);
      row.files.push_back(std::move(file));
    }
  }
  static const File& file_of(const Judgment& row, std::optional<std::uint64_t> id) {
    static const File none;
    const ObjectRecord* object = row.index.object(id);
    return object == nullptr ? none : row.files[static_cast<std::size_t>(object - row.report.objects.data())];
  }

  bool is_listed(std::string_view id) { return begun_.contains(id) || shared_.listed.contains(id); }
  void begin_file(std::string_view id) {
    begun_.emplace(id);
    out_->files.emplace_back(id, Batch::Tables());
  }

  void image_rows(const ObjectRecord& object, const File& file) {
    if (is_listed(file.id)) return;
    if (object.images) {
      begin_file(file.id);
      entry_rows(file, *object.images);
      return;
    }
    if (const ObjectFile* found = judge_.files().find(object)) {
      begin_file(file.id);
      std::vector<image::Candidate> candidates;
      for (const ImageCount& image : found->image_counts()) {
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

  void entry_rows(const File& file, const std::vector<ImageEntry>& images) {
    std::vector<image::Candidate> candidates;
    for (const ImageEntry& image : images) {
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
      put(Row(serves::row_id(fmt::format("{}/{}", file.id, capability)), serves::file_id(file.id),
              serves::compute_capability(capability), serves::family(*family++),
              serves::how(kHow.at(static_cast<std::size_t>(selection.choice)))),
          day_, out_->files.back().second);
    }
  }

  void image_row(const File& file, std::string_view kind, const std::string& arch, const std::string& isa,
                 std::uint64_t count, std::uint64_t bytes) {
    const auto parsed = image::parse_arch(arch);
    const bool plain = !parsed || parsed->suffix == image::Suffix::none;
    put(Row(images::row_id(fmt::format("{}/{}/{}/{}", file.id, kind, arch, isa)), images::file_id(file.id),
            images::build_id(file.build_id), images::sha256(file.sha256), images::path(file.path),
            images::package(file.package), images::version(file.version), images::kind(kind),
            images::arch(arch), images::isa(isa), images::count(count), images::bytes(bytes),
            images::suffix(plain ? std::string_view() : std::string_view(arch).substr(arch.size() - 1)),
            images::capability(parsed ? std::optional(parsed->cc.major + parsed->cc.minor / 10.0)
                                      : std::nullopt)),
        day_, out_->files.back().second);
  }

  static void load_rows(const Judgment& of, Known& out) {
    struct Sum {
      const File* file = nullptr;
      std::uint64_t count = 0;
      std::uint32_t number = 0;
      std::optional<std::uint64_t> device;
      std::string selected;
      bool one_device = true, one_image = true;
    };
    std::map<std::tuple<std::string_view, int, bool>, Sum> sums;
    std::vector<const Sum*> of_module;
    for (const ModuleRecord& module : of.report.modules) {
      const File& file = file_of(of, module.object);
      const std::string& id = file.id.empty() ? module.content_hash : file.id;
      Sum& sum = sums[{id, module.result, module.jit}];
      if (sum.count == 0) {
        sum.file = &file;
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
      put(Row(loads::row_id(Slot::id, fmt::format("/load/{}/{}/{}", file_id, result, jit ? "jit" : "sass")),
              loads::process_id(Slot::id), loads::file_id(file_id), loads::path(sum.file->path),
              loads::package(sum.file->package), loads::version(sum.file->version), loads::result(result),
              loads::jit(jit), loads::count(sum.count), loads::ms(Slot::next),
              loads::device(sum.one_device ? sum.device : std::nullopt),
              loads::selected(sum.one_image ? sum.selected : std::string())),
          out);
    }
    out.load_of.reserve(of_module.size());
    for (const Sum* sum : of_module) out.load_of.push_back(sum->number);
  }

  /// Which finding explains the failure record on a line.
  std::map<std::uint64_t, std::size_t> finding_rows(const Analysis& analysis, Known& out) const {
    std::map<std::uint64_t, std::size_t> explained;
    for (std::size_t number = 0; number < analysis.findings.size(); ++number) {
      const Finding& finding = analysis.findings[number];
      for (const ReportLine& failure : finding.failures) explained.emplace(failure.line, number);
      bool hypothetical = !finding.devices.empty();
      for (const Device& device : finding.devices)
        hypothetical = hypothetical && device.kind != Device::Kind::present;
      const auto gpu = finding.devices.empty() ? std::nullopt : finding.devices.front().cc;
      const Fix fix = finding.fixes.empty() ? Fix() : finding.fixes.front();
      const Place where = finding.where.empty() ? Place() : finding.where.front();
      put(Row(findings::row_id(Slot::id, finding_id(number)), findings::process_id(Slot::id),
              findings::time(Slot::time), findings::cause(row_of(finding.cause).name),
              findings::severity(to_name(finding.severity)), findings::confidence(finding.confidence),
              findings::code(finding.code), findings::file_id(file_key(finding.build_id, finding.object)),
              findings::path(finding.object), findings::package(finding.package.name),
              findings::version(finding.package.version), findings::kernel(finding.failed_kernel),
              findings::need(finding.need), findings::have(finding.have), findings::count(finding.count),
              findings::hypothetical(hypothetical),
              findings::compute_capability(gpu ? std::string(image::to_name(*gpu).view()) : std::string()),
              findings::fix(fix.id), findings::command(join(fix.commands, "\n")),
              findings::where_file(where.file),
              findings::where_line(where.file.empty() ? std::nullopt : std::optional(where.line))),
          out);
    }
    return explained;
  }

  static std::string finding_id(std::size_t number) { return fmt::format("/finding{}", number); }

  static void failure_row(const Judgment& of, const FailureRecord& failure,
                          const std::map<std::uint64_t, std::size_t>& explained, Known& out) {
    const ModuleRecord* module = of.index.module(failure.module);
    const File& file = file_of(of, failure.object ? failure.object : module ? module->object : std::nullopt);
    const auto finding = explained.find(failure.line);
    const bool known = finding != explained.end();
    const DeviceRecord* device = of.index.device(failure.device);
    const Layer layer = failure.layers.empty() ? Layer() : failure.layers.front();
    const PythonFrame frame = failure.python.empty() ? PythonFrame() : failure.python.front();
    put(Row(failures::row_id(Slot::id, fmt::format("/failure{}", failure.id)), failures::process_id(Slot::id),
            failures::time(Slot::time), failures::stage(failure.stage),
            known ? failures::finding_id(Slot::id, finding_id(finding->second)) : failures::finding_id(""),
            failures::cause(known ? row_of(of.analysis.findings[finding->second].cause).name : ""),
            failures::kernel(failure.kernel), failures::file_id(file.id), failures::path(file.path),
            failures::build_id(file.build_id), failures::package(file.package),
            failures::version(file.version), failures::count(failure.count), failures::name(layer.name),
            failures::code(failure.layers.empty() ? std::nullopt : std::optional(layer.code)),
            failures::compute_capability(device != nullptr ? device->compute_capability : ""),
            failures::driver(of.report.driver ? of.report.driver->cuda_version : ""),
            failures::python_file(frame.file),
            failures::python_line(failure.python.empty() ? std::nullopt : std::optional(frame.line))),
        out);
  }

  static void kernel_rows(const Judgment& of, Known& out) {
    std::size_t number = 0;
    for (const CoverageRecord& kernel : of.report.coverage) {
      const ModuleRecord* module = of.index.module(kernel.module);
      const std::string& file = file_of(of, kernel.object).id;
      put(Row(kernels::row_id(Slot::id, fmt::format("/kernel{}", number++)), kernels::process_id(Slot::id),
              kernels::kernel(kernel.kernel),
              kernels::file_id(file.empty() && module != nullptr ? module->content_hash : file),
              kernels::launches(kernel.launches)),
          out);
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

  static AnalysisOptions options() {
    AnalysisOptions out;
    out.keep_private = true;
    return out;
  }
  Shared& shared_;
  const ExportRequest& to_;
  Batch* out_ = nullptr;
  std::string id_;
  std::string time_;  ///< of the report at hand; empty where it is none
  std::string day_;
  std::string theirs_;  ///< behind the keys of another user's report: the owner; else empty
  AnalysisOptions options_ = options();
  EachReport judge_{options_};
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
      std::optional<ReportFile> file = walks_.back().next();
      if (!file) {
        walks_.pop_back();
        continue;
      }
      if (!file->path.starts_with('/')) file->path.insert(0, here_);
      const std::uint64_t id =
          content_hash(bytes_of(fmt::format("{}\n{}\n{}", file->path, file->bytes, file->changed_ns)));
      if (std::ranges::binary_search(known_, id)) {
        ++known;
        continue;
      }
      name = hash_of(fmt::format("{}{}{:016x}", host_, name, id));
      return Input{*std::move(file), id};
    }
    return std::nullopt;
  }
  std::uint64_t known = 0;  ///< so many were left out
  std::string name;         ///< of the export of those that were not

 private:
  std::span<const std::uint64_t> known_;
  std::vector<ReportWalk> walks_;  ///< the next one last
  std::string here_, host_ = host_name();
};

/// Writes which inputs were exported, in several small files.
class Manifests {
 public:
  explicit Manifests(TableFiles& files) : files_(files) {}
  void add(std::span<const std::uint64_t> inputs) {
    inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
    if (inputs_.size() >= kMaxInputs) write(fmt::format(".{}.json", ++parts_), {});
  }
  void finish(const std::map<std::string_view, std::uint64_t>& rows) { write(".json", rows); }

 private:
  static constexpr std::size_t kMaxInputs = 65536;
  void write(const std::string& ending, const std::map<std::string_view, std::uint64_t>& rows) {
    nlohmann::json counts = nlohmann::json::object();
    for (const auto& [table, count] : rows) counts[std::string(table)] = count;
    const nlohmann::json manifest = {{"schema", "kshim-facts/1"},
                                     {"host", host_name()},
                                     {"inputs", std::exchange(inputs_, {})},
                                     {"rows", std::move(counts)}};
    files_.add_manifest(ending, manifest.dump() + "\n");
  }
  TableFiles& files_;
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

  ExportResult run() {
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
  ExportResult sum_;         ///< of what was written
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

ExportResult Exporter::run(const std::vector<fs::path>& paths) {
  read_manifests();
  std::vector<std::string> notes;
  std::uint64_t total = 0;
  if (options_.progress) {
    Inputs all(paths, known_, notes);
    while (const std::optional<Input> input = all.next()) total += input->bytes;
    notes.clear();
  }
  Inputs inputs(paths, known_, notes);
  TableFiles files(options_.folder, options_.zstd);
  Shared shared{options_};
  Manifests manifests(files);
  ExportResult done = Threads(inputs, shared, files, manifests, total).run();
  done.known = inputs.known;
  done.notes = std::move(notes);
  if (done.reports + done.scans + done.rejected == 0) return done;
  manifests.finish(files.rows());
  files.finish(inputs.name);
  done.rows = files.rows();
  return done;
}

}  // namespace kshim::exports
