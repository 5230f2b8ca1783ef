// SPDX-License-Identifier: Apache-2.0
#include "failure/failures.h"

#include <bit>
#include <cstring>

#include "failure/failure_notice.h"
#include "failure/last_error_tracking.h"
#include "guest/clock.h"
#include "guest/options.h"
#include "guest/process_generation.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

/// 2, 10, 100, 1000 ...
bool is_milestone(std::uint64_t count) noexcept {
  if (count == 2) return true;
  while (count > 10 && count % 10 == 0) count /= 10;
  return count == 10;
}

/// A stack of the failure that is being written, and the earlier failure that has the same stack. The first
/// failures of a report always list their frames, for readers that do not know `native_of`.
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
  void written_with(std::uint64_t failure, Report& report) noexcept {
    std::uint64_t* const added = of_ ? nullptr : known_.add(identity_, failure);
    if (added != nullptr) report.zero_if_lost(*added);
  }

 private:
  KnownStacks& known_;
  std::uint64_t identity_;
  Maybe of_;
};

}  // namespace

void Failures::write_repeat(Report& report, std::size_t index) noexcept {
  constexpr std::uint64_t kAll = 1000;
  constexpr std::uint64_t kGap = 1'000'000;  // nanoseconds
  Known& known = known_[index];
  // With KSHIM_REPEATS=each the report says which call it was. A program that fails in a loop must not fill
  // the disk.
  if (options().each_repeat) {
    const std::uint64_t now = now_nanoseconds();
    if (known.count > kAll && now - known.last_written < kGap && !is_milestone(known.count)) return;
    known.last_written = now;
  }
  known.written = known.count;
  report.write<RecordType::repeat>([&](auto& record) {
    record.template add<Field::repeat_id>(std::uint64_t{index + 1});
    record.template add<Field::repeat_count>(known.count);
  });
}

void Failures::capture_stacks(bool name_kernel) noexcept {
  native_.clear();
  python_.clear();
  python_main_.clear();
  if (options().native_stacks) native_.capture(name_kernel);
  if (!options().python_stacks) return;
  python_.capture_this_thread();
  python_main_.capture_main_thread();
}

/// False when it was dropped: a full disk.
bool Failures::write(Report& report, const FailureInfo& facts, std::uint64_t id) noexcept {
  SameStack native(known_native_, native_.rows(), id);
  SameStack python(known_python_, python_.rows(), id);
  SameStack python_main(known_python_main_, python_main_.rows(), id);
  const bool written = report.write<RecordType::failure>([&](auto& record) {
    record.template add<Field::failure_id>(id);
    record.template add<Field::failure_stage>(report_name(facts.stage));
    record.template add<Field::failure_layers>(
        std::span<const ::kshim::report::LayerRow>(facts.layers, facts.layer_count));
    record.template add<Field::failure_device>(facts.device);
    record.template add<Field::failure_kernel>(facts.kernel.empty() ? std::string_view() : facts.kernel);
    record.template add<Field::failure_module>(facts.module_written ? Maybe(facts.module.record) : Maybe());
    record.template add<Field::failure_object>(facts.object == 0 ? Maybe() : Maybe(facts.object));
    record.template add<Field::failure_tid>(std::uint64_t{thread_id()});
    if (options().native_stacks && !native)
      record.template add<Field::failure_native>(native_.rows());
    else
      record.template null<Field::failure_native>();
    if (python_.rows().empty() || python)
      record.template null<Field::failure_python>();
    else
      record.template add<Field::failure_python>(python_.rows());
    if (python_main_.rows().empty() || python_main)
      record.template null<Field::failure_python_main>();
    else
      record.template add<Field::failure_python_main>(python_main_.rows());
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
    record.template add<Field::failure_jit_log>(jit_log_.empty() ? std::string_view() : jit_log_.view());
    record.template add<Field::failure_driver_log>(facts.driver_log.empty() ? std::string_view()
                                                                            : facts.driver_log);
  });
  if (!written) return false;
  native.written_with(id, report);
  python.written_with(id, report);
  python_main.written_with(id, report);
  return true;
}

void Failures::begin_again(std::uint32_t report) noexcept {
  report_ = report;
  count_ = 0;
  std::memset(slots_, 0, sizeof slots_);
  known_native_.clear();
  known_python_.clear();
  known_python_main_.clear();
}

void Failures::notify(const Scene& scene, const FailureInfo& facts) noexcept {
  Notice notice;
  ArchList have;
  image::ShortName arch;
  fill_notice(facts, scene.driver, notice, have, arch);
  const auto python = !python_.rows().empty() ? python_.rows() : python_main_.rows();
  if (!python.empty()) {
    notice.python_file = python[0].file;
    notice.python_line = python[0].line;
    notice.python_function = python[0].function;
  }
  print_notice(notice, scene.report.path());
}

/// kMax when it is new and there is no room.
std::size_t Failures::find_or_add(std::uint64_t key) noexcept {
  std::size_t slot = key % kSlots;
  for (; slots_[slot] != 0; slot = (slot + 1) % kSlots)
    if (known_[slots_[slot] - 1U].key == key) return slots_[slot] - 1U;
  if (count_ == kMax) return kMax;
  known_[count_] = {key, 0, 0, 0};
  slots_[slot] = static_cast<std::uint16_t>(++count_);
  return count_ - 1;
}

void Failures::flush_repeats(Report& report) noexcept {
  if (report_ != current_report()) return;
  for (std::size_t i = 0; i < count_; ++i) {
    Known& known = known_[i];
    if (known.written == 0 || known.count == known.written) continue;
    known.written = known.count;
    report.write<RecordType::repeat>([&](auto& record) {
      record.template add<Field::repeat_id>(std::uint64_t{i + 1});
      record.template add<Field::repeat_count>(known.count);
    });
  }
}

void Failures::record(const Scene& scene, const FailureInfo& facts) noexcept {
  const std::uint32_t number = scene.report.begin();
  if (report_ != number) begin_again(number);
  const std::size_t index = find_or_add(key_of(facts));
  if (index == kMax) {
    count_dropped();
    return;
  }
  Known& known = known_[index];
  ++known.count;
  if (facts.runtime) set_last_error({facts.code, number, index + 1, facts.owner});
  if (known.written != 0) {
    if (options().each_repeat || is_milestone(known.count)) write_repeat(scene.report, index);
    return;
  }
  // One whose record was dropped is tried again at its 2nd, 4th, 8th ... occurrence.
  if (!std::has_single_bit(known.count)) return;
  if (known.count == 1) scene.report.count_failure();
  scene.objects.announce(scene.report, facts.object, {});
  capture_stacks(facts.kernel.empty());
  if (write(scene.report, facts, index + 1)) {
    known.written = 1;
    scene.report.zero_if_lost(known.written);
  }
  if (known.count == 1 && deserves_notice(facts)) notify(scene, facts);
  if (known.written != 0 && known.count != 1) write_repeat(scene.report, index);
  scene.gaps.note_failure({scene.report, scene.driver, scene.objects}, facts.module.code, facts.device,
                          facts.stage == Stage::load);
  scene.objects.announce_libraries(scene.report);
}

void Failures::add(const Scene& scene, const Refusal& refusal, std::optional<std::uint64_t> device) noexcept {
  FailureInfo facts;
  jit_log_.shrink(0);
  gather(refusal, device, facts);
  record(scene, facts);
}

void Failures::add(const Scene& scene, std::string_view driver_log) noexcept {
  FailureInfo facts;
  jit_log_.shrink(0);
  facts.stage = Stage::other;
  facts.driver_log = driver_log;
  record(scene, facts);
}

void Failures::add(const Scene& scene, const DriverFailure* driver, const CallArgs* runtime,
                   std::optional<std::uint64_t> device, std::string_view driver_log) noexcept {
  FailureInfo facts;
  gather(driver, runtime, {scene.modules, scene.driver, scene.handles, scene.report.begin()}, facts);
  if (!facts.device) facts.device = device;
  facts.driver_log = driver_log;
  jit_log_.shrink(0);
  if (driver != nullptr) read_jit_log(driver->facts, jit_log_);
  record(scene, facts);
}

}  // namespace kshim::shim
