// SPDX-License-Identifier: Apache-2.0
#include "track/modules.h"

#include <atomic>
#include <span>

#include "kshim/base/hash.h"
#include "kshim/report/kept_image.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

/// Loads of this process and its ancestors. Outside of the State: a number means one load, also in a child.
std::atomic<std::uint64_t> g_count{0};

std::uint64_t key_of(const CallArgs& facts, const DeviceCode& code,
                     std::optional<std::uint64_t> device) noexcept {
  const std::uint64_t parts[] = {static_cast<std::uint64_t>(facts.code), device.value_or(~0ULL), code.key(),
                                 index_of(facts.hook)};
  return key_hash(std::as_bytes(std::span(parts)));
}

/// How the file uses the runtime, as far as this load shows.
std::string_view runtime_of(const CallArgs& facts, const DeviceCode& code) noexcept {
  if (facts.file != nullptr) return "none";
  if (!code.wrapped || code.object == 0) return {};
  return find_object_in_use(facts.caller).identity == code.object ? "static" : std::string_view();
}

bool write_module(const CallArgs& facts, Module& module, const Period& period,
                  std::optional<std::uint64_t> device, Report& report, const DriverInfo& driver) noexcept {
  const DeviceCode& code = module.code;
  const DeviceInfo* gpu = driver.device(device);
  image::ShortName selected;
  std::optional<bool> jit;
  if (gpu != nullptr && code.image_count != 0) {
    const image::Selection selection = code.selection_for(driver.platform_of(gpu->cc));
    module.fits = selection.choice != image::Choice::none;
    if (module.fits) {
      const image::Candidate& image = code.images[selection.index];
      selected = to_name(image.kind, image.arch);
      jit = selection.choice == image::Choice::jit;
    }
  }
  ::kshim::report::KeptName name;
  if (code.hash != 0) name = {code.hash, code.kind};
  const image::ShortName toolkit = to_name(code.toolkit);
  using Maybe = std::optional<std::uint64_t>;
  return report.write_later<RecordType::module>(period.end, [&](auto& record) {
    record.template add<Field::module_id>(module.number);
    record.template add<Field::module_object>(code.object == 0 ? Maybe() : Maybe(code.object));
    record.template add<Field::module_offset>(code.object == 0 ? Maybe() : Maybe(code.offset));
    record.template add<Field::module_content_hash>(name.hash());
    record.template add<Field::module_size>(code.size == 0 ? Maybe() : Maybe(code.size));
    record.template add<Field::module_api>(row_of(facts.hook).name);
    record.template add<Field::module_result>(static_cast<std::uint64_t>(facts.code));
    record.template add<Field::module_selected>(selected.size == 0 ? std::string_view() : selected.view());
    record.template add<Field::module_jit>(jit);
    record.template add<Field::module_ms>(::kshim::report::Milliseconds{period.end - period.begin});
    record.template add<Field::module_device>(device);
    record.template add<Field::module_kept>(module.kept ? name.view() : std::string_view());
    record.template add<Field::module_toolkit>(code.toolkit.known() ? toolkit.view() : std::string_view());
  });
}

}  // namespace

/// An equal load that failed before and has a record; nullptr where there is none.
Modules::FailedLoad* Modules::find_failed(std::uint64_t key) noexcept {
  for (std::size_t i = 0; i < failed_count_; ++i)
    if (failed_[i].key == key) return &failed_[i];
  return nullptr;
}

/// nullptr where there is no room.
Modules::FailedLoad* Modules::add_failed(std::uint64_t key) noexcept {
  if (FailedLoad* const lost = find_failed(0); lost != nullptr) {
    lost->key = key;
    return lost;
  }
  if (failed_count_ == kMaxFailed) return nullptr;
  failed_[failed_count_] = {key, 0};
  return &failed_[failed_count_++];
}

void Modules::begin_in(Report& report) noexcept {
  if (recorded_report_ == report.begin()) return;
  recorded_report_ = report.begin();
  succeeded_ = failed_count_ = 0;
}

bool Modules::is_new_failure(const CallArgs& facts, const DeviceCode& code,
                             std::optional<std::uint64_t> device, Report& report) noexcept {
  begin_in(report);
  return facts.code != 0 && (failed_count_ < kMaxFailed || find_failed(0) != nullptr) &&
         find_failed(key_of(facts, code, device)) == nullptr;
}

void Modules::add(const CallArgs& facts, const Period& period, std::optional<std::uint64_t> device,
                  Report& report, const DriverInfo& driver, ObjectRecords& objects, Module& module) noexcept {
  objects.announce(report, module.code.object, runtime_of(facts, module.code));
  report.count_module();
  begin_in(report);
  module.report = recorded_report_;
  const bool failed = facts.code != 0;
  const std::uint64_t key = failed ? key_of(facts, module.code, device) : 0;
  FailedLoad* equal = failed ? find_failed(key) : nullptr;
  const std::uint64_t count = g_count.load(std::memory_order_relaxed);
  if (equal != nullptr) module.record = equal->record;
  module.number = equal != nullptr && count - equal->record < kKept
                      ? equal->record
                      : g_count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (equal == nullptr && (failed ? (equal = add_failed(key)) != nullptr : succeeded_ < kMaxRecords)) {
    if (failed)
      equal->record = module.number;
    else
      ++succeeded_;
    // After a full disk, an equal load is tried again.
    if (write_module(facts, module, period, device, report, driver)) {
      module.record = module.number;
      report.zero_if_lost(kept(module.number).record);
    } else if (failed) {
      equal->key = 0;
    }
    if (failed) report.zero_if_lost(equal->key);
  }
  kept(module.number) = module;
}

bool Modules::find(std::uint64_t number, Module& out) const noexcept {
  if (number == 0 || kept(number).number != number) return false;
  out = kept(number);
  return true;
}

bool Modules::find_code(std::uintptr_t code, Module& out) const noexcept {
  if (code == 0) return false;
  const std::uint64_t count = g_count.load(std::memory_order_relaxed);
  for (std::uint64_t number = count; number > 0 && count - number < kKept; --number) {
    if (kept(number).number != number || kept(number).code.address != code) continue;
    out = kept(number);
    return true;
  }
  return false;
}

}  // namespace kshim::shim
