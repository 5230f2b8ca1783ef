// SPDX-License-Identifier: Apache-2.0
#include "failure/failures.h"

#include "cuda/call_args.h"
#include "cuda/driver_info.h"
#include "cuda/next_symbol.h"
#include "failure/failure_info.h"
#include "failure/gaps.h"
#include "failure/known_stacks.h"
#include "failure/last_error_tracking.h"
#include "failure/target_scan.h"
#include "guest/clock.h"
#include "guest/options.h"
#include "guest/process_generation.h"
#include "guest/timed_lock.h"
#include "process/loaded_objects.h"
#include "process/python/frames.h"
#include "process/stack/native.h"
#include "report/report_file.h"
#include "track/coverage.h"
#include "track/modules.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

struct Known {
  std::uint64_t key = 0;
  std::uint64_t count = 0;    ///< how often it happened
  std::uint64_t written = 0;  ///< how often the report says
  std::uint64_t told = 0;     ///< when the last repeat was written, with KSHIM_REPEATS=each
};
constexpr std::size_t kMaxFailures = KnownStacks::kMax;

// All of it under g_lock.
PatientLock g_lock;
std::uint32_t g_report = 0;  ///< the report that g_known belongs to
constinit Known g_known[kMaxFailures];
std::size_t g_known_count = 0;
constinit NativeStack g_native;
constinit PythonStack g_python;
constinit PythonStack g_python_main;
constinit KnownStacks g_known_native;
constinit KnownStacks g_known_python;
constinit KnownStacks g_known_python_main;

void write_repeat(std::size_t index) noexcept {
  Known& known = g_known[index];
  known.written = known.count;
  write_record<RecordType::repeat>([&](auto& record) {
    record.template add<Field::repeat_id>(std::uint64_t{index + 1});
    record.template add<Field::repeat_count>(known.count);
  });
}

/// 2, 10, 100, 1000 ...
bool is_milestone(std::uint64_t count) noexcept {
  if (count == 2) return true;
  while (count > 10 && count % 10 == 0) count /= 10;
  return count == 10;
}

/// With KSHIM_REPEATS=each: which call it was shows in the report. A program that fails in a loop must not
/// fill the disk all the same.
bool is_told_each_time(Known& known) noexcept {
  constexpr std::uint64_t kAll = 1000;
  constexpr std::uint64_t kGap = 1'000'000;  // nanoseconds
  if (!options().each_repeat) return false;
  const std::uint64_t now = now_nanoseconds();
  if (known.count > kAll && now - known.told < kGap) return false;
  known.told = now;
  return true;
}

void capture_stacks() noexcept {
  g_native.clear();
  g_python.clear();
  g_python_main.clear();
  if (options().native_stacks) g_native.capture();
  if (!options().python_stacks) return;
  g_python.capture_this_thread();
  g_python_main.capture_main_thread();
}

/// A stack of the failure that is written now, and the earlier failure whose record has it. The first
/// failures of a report have their frames all the same: whoever reads a few lines of it by eye, or knows no
/// `native_of`, finds them there.
class SameStack {
 public:
  static constexpr std::uint64_t kInFull = 16;
  template <class Row>
  SameStack(KnownStacks& known, std::span<const Row> rows, std::uint64_t failure) noexcept
      : known_(known),
        identity_(identity_of(rows)),
        of_(failure <= kInFull ? Maybe() : known.find(identity_)) {}
  explicit operator bool() const noexcept { return of_.has_value(); }
  Maybe of() const noexcept { return of_; }
  void written_with(std::uint64_t failure) noexcept {
    if (!of_) known_.add(identity_, failure);
  }

 private:
  KnownStacks& known_;
  std::uint64_t identity_;
  Maybe of_;
};

void write_failure(const FailureFacts& facts, std::uint64_t id) noexcept {
  SameStack native(g_known_native, g_native.rows(), id);
  SameStack python(g_known_python, g_python.rows(), id);
  SameStack python_main(g_known_python_main, g_python_main.rows(), id);
  const bool written = write_record<RecordType::failure>([&](auto& record) {
    record.template add<Field::failure_id>(id);
    record.template add<Field::failure_stage>(report_name(facts.stage));
    record.template add<Field::failure_layers>(
        std::span<const report::LayerRow>(facts.layers, facts.layer_count));
    record.template add<Field::failure_device>(facts.device);
    record.template add<Field::failure_kernel>(facts.kernel.empty() ? std::string_view() : facts.kernel);
    record.template add<Field::failure_module>(facts.module_written ? Maybe(facts.module.record) : Maybe());
    record.template add<Field::failure_object>(facts.object == 0 ? Maybe() : Maybe(facts.object));
    record.template add<Field::failure_tid>(std::uint64_t{thread_id()});
    if (options().native_stacks && !native)
      record.template add<Field::failure_native>(g_native.rows());
    else
      record.template null<Field::failure_native>();
    if (g_python.rows().empty() || python)
      record.template null<Field::failure_python>();
    else
      record.template add<Field::failure_python>(g_python.rows());
    if (g_python_main.rows().empty() || python_main)
      record.template null<Field::failure_python_main>();
    else
      record.template add<Field::failure_python_main>(g_python_main.rows());
    record.template add<Field::failure_native_of>(native.of());
    record.template add<Field::failure_python_of>(python.of());
    record.template add<Field::failure_python_main_of>(python_main.of());
    const Refusal* refusal = facts.refusal;
    record.template add<Field::failure_asked>(refusal != nullptr ? refusal->asked.view()
                                                                 : std::string_view());
    record.template add<Field::failure_compiler>(refusal != nullptr ? refusal->version.view()
                                                                    : std::string_view());
    if (refusal != nullptr && refusal->known_count != 0)
      record.template add<Field::failure_known>(
          std::span<const std::string_view>(refusal->known, refusal->known_count));
    else
      record.template null<Field::failure_known>();
  });
  if (!written) return;
  native.written_with(id);
  python.written_with(id);
  python_main.written_with(id);
}

void begin_anew(std::uint32_t report) noexcept {
  g_report = report;
  g_known_count = 0;
  g_known_native.clear();
  g_known_python.clear();
  g_known_python_main.clear();
}

void alarm(const FailureFacts& facts) noexcept {
  Alarm alarm;
  ArchList have;
  image::ShortName arch;
  fill_alarm(facts, alarm, have, arch);
  const auto python = !g_python.rows().empty() ? g_python.rows() : g_python_main.rows();
  if (!python.empty()) {
    alarm.python_file = python[0].file;
    alarm.python_line = python[0].line;
    alarm.python_function = python[0].function;
  }
  raise_alarm(alarm);
}

/// Under g_lock. kMaxFailures when it is new and there is no room.
std::size_t find_or_add(std::uint64_t key) noexcept {
  for (std::size_t i = 0; i < g_known_count; ++i)
    if (g_known[i].key == key) return i;
  if (g_known_count == kMaxFailures) return kMaxFailures;
  g_known[g_known_count] = {key, 0, 0, 0};
  return g_known_count++;
}

EndCounts count_at_end(Ending ending) noexcept {
  if (ending == Ending::normal) {
    announce_libraries();
    survey_targets();
  }
  write_launch_counts();
  const std::uint32_t number = current_report();
  const LockGuard guard(g_lock);
  if (!guard || number != g_report) return {0, modules_in_report(number)};
  for (std::size_t i = 0; i < g_known_count; ++i)
    if (g_known[i].count != g_known[i].written) write_repeat(i);
  return {g_known_count, modules_in_report(number)};
}

void record(const FailureFacts& facts, std::uint32_t number) noexcept {
  count_failures_at_end();
  const std::uint64_t key = key_of(facts);
  // The runtime has asked the driver for its version and for nothing else.
  constexpr abi::Result kInsufficientDriver = 35;
  if (facts.runtime && facts.code == kInsufficientDriver && !driver_path().empty()) learn_driver(false);
  // Nobody else may hold the lock while the driver, or a lock of another part, is asked: all that comes
  // before it.
  announce_driver();
  {
    const LockGuard guard(g_lock);
    if (!guard) {
      count_dropped();
      return;
    }
    if (g_report != number) begin_anew(number);
    const std::size_t before = g_known_count;
    const std::size_t index = find_or_add(key);
    if (index == kMaxFailures) {
      count_dropped();
      return;
    }
    Known& known = g_known[index];
    ++known.count;
    if (facts.runtime) leave_error(facts.code, index + 1, number, facts.owner);
    if (index < before) {
      if (is_told_each_time(known) || is_milestone(known.count)) write_repeat(index);
      return;
    }
    known.written = 1;
    announce_object(facts.object, {});
    capture_stacks();
    write_failure(facts, index + 1);
    if (is_alarming(facts)) alarm(facts);
  }
  note_gaps_of_failure(facts.module.code, facts.device, facts.stage == Stage::load);
  announce_libraries();
}

}  // namespace

void count_failures_at_end() noexcept { at_report_end(&count_at_end); }

void record_refusal(const Refusal& refusal) noexcept {
  const std::uint32_t number = begin_report();
  if (number == 0) return;
  FailureFacts facts;
  gather(refusal, facts);
  record(facts, number);
}

void record_failure(const DriverFailure* driver, const CallFacts* runtime) noexcept {
  const std::uint32_t number = begin_report();
  if (number == 0) return;
  FailureFacts facts;
  gather(driver, runtime, number, facts);
  record(facts, number);
}

}  // namespace kshim::shim
