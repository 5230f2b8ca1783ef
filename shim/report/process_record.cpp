// SPDX-License-Identifier: Apache-2.0
#include "report/process_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "guest/clock.h"
#include "guest/options.h"
#include "guest/own_file.h"
#include "guest/program_path.h"
#include "guest/slices.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/report/hmac.h"
#include "kshim/report/redact.h"
#include "kshim/report/schema.h"
#include "kshim/version.h"
#include "report/job.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

using report::Field;

std::size_t read_whole(const char* path, char* to, std::size_t capacity) noexcept {
  return open_regular_file(path).read_whole(to, capacity);
}

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18) return {};
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return {};
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

/// The part of argv that may be recorded.
std::span<const std::string_view> shown_arguments(report::ArgumentDetail detail,
                                                  ProcessRecordRoom& room) noexcept {
  if (detail == report::ArgumentDetail::off) return {};
  std::string_view rest(room.raw, read_whole("/proc/self/cmdline", room.raw, sizeof room.raw));
  std::size_t used = 0;
  std::size_t count = 0;
  report::ArgumentRedactor redactor(detail);
  while (!rest.empty() && count < ProcessRecordRoom::kMaxArguments) {
    const std::string_view argument = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(argument.size() < rest.size() ? argument.size() + 1 : rest.size());
    const std::span<char> left(room.shown + used,
                               std::min(sizeof room.shown - used, report::kElementStringLimit));
    const std::size_t size = redactor.next(argument, left).size;
    if (used + size == sizeof room.shown) break;
    room.arguments[count++] = {room.shown + used, size};
    used += size;
  }
  return {room.arguments, count};
}

/// The user id; with KSHIM_PRIVATE its HMAC with the site's key. No data() if there is no key.
std::string_view shown_user(const Options& options, ProcessRecordRoom& room) noexcept {
  constexpr std::size_t kShortestKey = 16;
  constexpr std::size_t kMaxKeyLength = 4096;
  Text<16> number;
  number << static_cast<std::uint64_t>(raw::user());
  if (!options.is_private) {
    std::copy_n(number.view().data(), number.view().size(), room.user.data());
    return {room.user.data(), number.view().size()};
  }
  if (options.key_file.empty()) return {};
  PathText path;
  path << options.key_file;
  // room.raw is still unused here.
  std::string_view key(room.raw, read_whole(path.c_str(), room.raw, kMaxKeyLength + 1));
  while (key.ends_with('\n') || key.ends_with('\r')) key.remove_suffix(1);
  if (key.size() < kShortestKey || key.size() > kMaxKeyLength) {
    PathText line;
    line << "KSHIM_PRIVATE: " << options.key_file.substr(0, 1000)
         << " is no key (a file of 16 to 4096 bytes that this process can read): the report has no user";
    log_line(LogLevel::warn, line.view());
    return {};
  }
  room.user = report::hmac_sha256(key, number.view());
  std::fill_n(room.raw, kMaxKeyLength + 1, '\0');
  return {room.user.data(), room.user.size()};
}

}  // namespace

Text<32> rfc3339(std::int64_t seconds, std::uint32_t nanoseconds) noexcept {
  constexpr std::int64_t kDay = 86400;
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{seconds / kDay}}};
  const std::int64_t second = seconds % kDay;
  Text<32> out;
  const auto digits = [&out](std::int64_t value, std::int64_t highest) {
    for (; highest != 0; highest /= 10) out.put(static_cast<char>('0' + value / highest % 10));
  };
  digits(static_cast<int>(date.year()), 1000), out.put('-'), digits(static_cast<unsigned>(date.month()), 10),
      out.put('-'), digits(static_cast<unsigned>(date.day()), 10), out.put('T');
  digits(second / 3600, 10), out.put(':'), digits(second / 60 % 60, 10), out.put(':'),
      digits(second % 60, 10);
  out.put('.'), digits(nanoseconds / 1000, 100'000), out.put('Z');
  return out;
}

Text<32> time_now() noexcept {
  timespec now{};
  read_clock(CLOCK_REALTIME, now);
  return rfc3339(now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec));
}

namespace {
/// The fields after the name begin with 3 (proc(5)).
std::uint64_t number_of(std::string_view stat, int wanted) noexcept {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  std::string_view rest = part_of(stat, name_end + 1);
  for (int field = 3;; ++field) {
    if (rest.empty() || rest.front() != ' ') return 0;
    rest.remove_prefix(1);
    const std::string_view value = rest.substr(0, rest.find_first_of(" \n"));
    if (field == wanted) return parse_number(value).value_or(0);
    rest.remove_prefix(value.size());
  }
}
}  // namespace

std::uint64_t start_of(std::string_view stat) noexcept { return number_of(stat, 22); }
std::uint64_t parent_of(std::string_view stat) noexcept { return number_of(stat, 4); }

std::optional<std::uint64_t> rank_of(const EnvironmentCopy& environment) noexcept {
  constexpr std::string_view kRanks[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (const std::string_view name : kRanks)
    if (const auto rank = parse_number(environment.find(name))) return rank;
  return {};
}

void fill_process_record(ProcessRecord& record, const ProcessNames& names, const EnvironmentCopy& environment,
                         std::uint64_t sample, ProcessRecordRoom& room) noexcept {
  const Text<32> time = time_now();  // read first: `t` counts from this moment
  const std::string_view hash(KSHIM_GIT_HASH);
  Text<128> version;
  version << KSHIM_VERSION;
  if (!hash.empty()) version << " (" << hash << ")";
  const std::size_t stat_size = read_whole("/proc/self/stat", room.stat, sizeof room.stat);
  const std::size_t exe_size = read_program_path(room.exe, sizeof room.exe);
  const std::string_view exe(exe_size != 0 ? room.exe : nullptr, exe_size);
  const bool hidden = options().is_private;
  const std::string_view user = shown_user(options(), room);
  const std::span<const std::string_view> arguments =
      shown_arguments(hidden ? report::ArgumentDetail::off : options().arguments, room);
  const std::string_view folder = hidden ? std::string_view() : options().start_folder;

  record.add<Field::process_schema>(report::kReportSchema);
  record.add<Field::process_shim>(version.view());
  record.add<Field::process_run>(options().run_id);
  record.add<Field::process_host>(names.host);
  record.add<Field::process_pid>(std::uint64_t{names.pid});
  record.add<Field::process_uid>(user);
  record.add<Field::process_hidden>(hidden);
  if (const JobRows job(environment); job.count != 0)
    record.add<Field::process_job>(std::span(job.rows, job.count));
  else
    record.null<Field::process_job>();
  record.add<Field::process_sample>(sample > 1 ? std::optional(sample) : std::nullopt);
  record.add<Field::process_start>(start_of({room.stat, stat_size}));
  record.add<Field::process_ppid>(std::uint64_t{raw::parent_process()});
  record.add<Field::process_rank>(rank_of(environment));
  record.add<Field::process_time>(time.view());
  record.add<Field::process_exe>(exe);
  if (arguments.empty())
    record.null<Field::process_argv>();
  else
    record.add<Field::process_argv>(arguments);
  record.add<Field::process_cwd>(folder.empty() ? std::string_view() : folder);
  record.add<Field::process_env>(environment.rows());
}

}  // namespace kshim::shim
