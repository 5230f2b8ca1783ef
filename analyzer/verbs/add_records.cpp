// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/add_records.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "analyzer/core/log.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/places.h"
#include "kshim/files/open_file.h"

namespace kshim::verbs {
using input::Report;

namespace {

constexpr std::size_t kMaxPackages = 1000;
// The longest record, a failure with its stacks, has 64 KiB (docs/report-format.md).
constexpr off_t kTail = off_t{1} << 17;

struct Tail {
  std::uint64_t seq = 0;
  std::uint64_t t = 0;
  bool torn = false;
};

/// What the last whole line of a report counts; nullopt where there is none.
std::optional<Tail> read_tail(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return std::nullopt;
  const off_t begin = status.st_size > kTail ? status.st_size - kTail : 0;
  std::string text(static_cast<std::size_t>(status.st_size - begin), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), begin);
  if (got < 0 || static_cast<std::size_t>(got) != text.size()) return std::nullopt;
  Tail out;
  out.torn = text.back() != '\n';
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::size_t first = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;  // npos + 1 is the begin
  simdjson::dom::parser parser;
  simdjson::dom::element record;
  if (parser.parse(text.data() + first, end - first).get(record) != simdjson::SUCCESS) return std::nullopt;
  if (record["seq"].get(out.seq) != simdjson::SUCCESS || record["t"].get(out.t) != simdjson::SUCCESS)
    return std::nullopt;
  return out;
}

bool still_runs(const Report& report) {
  return !report.end && ::kill(static_cast<pid_t>(report.process.pid), 0) == 0;
}

/// By the shim's own writer, so that it is redacted as the rest of the report is.
std::string line_of(const input::PackageRecord& package, std::uint64_t seq, std::uint64_t t) {
  using report::Field;
  const auto text = [](std::string_view value) { return value.empty() ? std::string_view() : value; };
  std::array<char, 65536> storage;
  report::Record<report::RecordType::package> record(storage, seq, t);
  record.add<Field::package_object>(package.object);
  record.add<Field::package_name>(std::string_view(package.name));
  record.add<Field::package_version>(text(package.version));
  record.add<Field::package_manager>(text(package.manager));
  record.add<Field::package_build>(text(package.build));
  record.add<Field::package_channel>(text(package.channel));
  record.add<Field::package_environment>(text(package.environment));
  record.add<Field::package_source>(text(package.source));
  return std::string(record.finish());
}

std::string line_of(const diagnose::Ending& ending, std::uint64_t seq, std::uint64_t t) {
  using report::Field;
  const auto number = [](const std::optional<int>& value) {
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  };
  std::array<char, 512> storage;
  report::Record<report::RecordType::exit> record(storage, seq, t);
  record.add<Field::exit_status>(ending.signal ? std::nullopt : number(ending.status));
  record.add<Field::exit_signal>(number(ending.signal));
  return std::string(record.finish());
}

/// Whether it is the report of the program that the caller ran: of several, because it ran another one in its
/// place, the last. Another container's process may have the same number.
bool is_of_program(const Report& report, const diagnose::RunFacts& run) {
  std::error_code error;
  return run.pid != 0 && static_cast<long>(report.process.pid) == run.pid &&
         std::filesystem::equivalent(report.path, run.last_report, error);
}

/// The caller, where the report hides it.
std::optional<report::Person> hidden_person(const Report& report) {
  if (!report.process.hidden) return std::nullopt;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  return report::Person{variable("HOME"), variable("USER")};
}

bool write_all(int fd, const std::string& text) {
  ssize_t got = 0;
  do got = ::write(fd, text.data(), text.size());
  while (got < 0 && errno == EINTR);
  return got >= 0 && static_cast<std::size_t>(got) == text.size();
}

}  // namespace

void add_records(const diagnose::Scene& scene) {
  const Report& report = scene.report;
  if (still_runs(report)) return;
  std::vector<input::PackageRecord> rows;
  for (const input::ObjectRecord& object : report.objects) {
    if (rows.size() >= kMaxPackages) break;
    if (scene.index.package(object.id) != nullptr || scene.files.find(object) == nullptr) continue;
    if (auto package = package_of(scene, object); package && !package->name.empty())
      rows.push_back(std::move(*package));
  }
  const bool exit = !report.exit && is_of_program(report, scene.run);
  if (rows.empty() && !exit) return;
  const files::Descriptor file(
      ::open(report.path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const int fd = file.get();
  // Into a file of another user (a program that went on as one) nothing is written: that user may lay other
  // names there.
  struct stat status {};
  if (::fstat(fd, &status) != 0 || status.st_uid != ::geteuid()) return;
  // Behind a torn line nothing is added: it would no longer be the last, which alone may be torn.
  if (auto tail = read_tail(fd); tail && !tail->torn) {
    const auto person = hidden_person(report);
    report::hide(person ? &*person : nullptr);
    bool good = true;
    for (std::size_t i = 0; good && i < rows.size(); ++i)
      good = write_all(fd, line_of(rows[i], ++tail->seq, tail->t));
    report::hide(nullptr);
    if (good && exit) good = write_all(fd, line_of(scene.run.ending, ++tail->seq, tail->t));
    if (!good) core::log_debug(core::sanitize(report.path) + ": records could not be added");
  }
}

}  // namespace kshim::verbs
