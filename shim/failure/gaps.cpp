// SPDX-License-Identifier: Apache-2.0
#include "failure/gaps.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "cuda/cuda_libraries.h"
#include "cuda/driver_info.h"
#include "guest/options.h"
#include "guest/seen_keys.h"
#include "report/report_file.h"
#include "track/fatbin_registry.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

// A collision or a full neighbourhood loses a gap that the command finds again in the file.
SeenKeys<16384> g_written;

/// A runtime that loads everything at once, on a device that nothing fits, has thousands of kernels to name.
/// Up to so many bytes of names a device or target, gaps list all of theirs; later ones a few, and how many
/// there are. The file has the rest, and a module in which something else fails is listed in full after all.
constexpr std::uint64_t kNamesInFull = 131072;
constexpr std::size_t kFewNames = 2;
constexpr std::size_t kAccounts = 64;             // half for devices, half for targets
std::atomic<std::uint64_t> g_named[kAccounts]{};  // number of the report << 32 | bytes of names

bool names_fit(std::size_t account, std::uint32_t number) noexcept {
  const std::uint64_t now = g_named[account].load(std::memory_order_relaxed);
  return now >> 32U != number || (now & 0xffffffffULL) < kNamesInFull;
}

void count_names(std::size_t account, std::uint32_t number,
                 std::span<const std::string_view> names) noexcept {
  std::uint64_t bytes = 0;
  for (const std::string_view name : names) bytes += name.size();
  std::uint64_t now = g_named[account].load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    const std::uint64_t before = now >> 32U == number ? now & 0xffffffffULL : 0;
    next = std::uint64_t{number} << 32U | std::min<std::uint64_t>(before + bytes, 0xffffffffULL);
  } while (!g_named[account].compare_exchange_weak(now, next, std::memory_order_relaxed));
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29U);
}

std::uint64_t key_of(const DeviceCode& code, std::uint32_t number, std::uint64_t device,
                     image::Arch target) noexcept {
  std::uint64_t key = mix(number, device);
  key = mix(key, target.cc.number() * 4U + static_cast<unsigned>(target.suffix));
  key = mix(key, code.object);
  return mix(key, code.object != 0 ? code.offset : code.hash != 0 ? code.hash : code.address);
}

/// What brought a module up.
enum class Why : std::uint8_t {
  known,    ///< it is there
  loading,  ///< its image is still where the driver was told to look
  failed    ///< something in it failed, other than its load
};

struct Gap {
  std::uint64_t key = 0;
  std::size_t account = 0;
  std::optional<std::uint64_t> device;
  image::Arch need;
};

/// `few`: with the first of its names alone. True where the gap is to be written at all: that it is there
/// already (not `first`) is no matter where names were left out then and are wanted now.
bool choose_names(const Gap& gap, std::uint32_t number, Why why, bool first, const KernelNames& kernels,
                  bool& few) noexcept {
  const std::uint64_t in_full = mix(gap.key, kNamesInFull);
  few = false;
  if (!first) return kernels.count > kFewNames && g_written.is_first(in_full);
  few = why != Why::failed && kernels.count > kFewNames && !names_fit(gap.account, number);
  if (!few) g_written.is_first(in_full);
  return true;
}

void write_gap(const DeviceCode& code, const Gap& gap, std::uint32_t number, Why why) noexcept {
  const bool first = g_written.is_first(gap.key);
  if (!first && why != Why::failed) return;
  KernelNames kernels;
  registered_kernels(code.address, kernels);
  if (why == Why::loading && kernels.count == 0) loose_kernels(code, kernels);
  bool few = false;
  if (!choose_names(gap, number, why, first, kernels, few)) return;
  const std::span<const std::string_view> names = kernels.all().first(few ? kFewNames : kernels.count);
  count_names(gap.account, number, names);
  ArchList have;
  code.list(have);
  const image::ShortName name = to_name(image::ImageKind::cubin, gap.need);
  announce_object(code.object, {});
  const std::optional<std::uint64_t> object =
      code.object == 0 ? std::nullopt : std::optional<std::uint64_t>(code.object);
  write_record<RecordType::gap>([&](auto& record) {
    record.template add<Field::gap_object>(object);
    record.template add<Field::gap_offset>(object ? std::optional<std::uint64_t>(code.offset) : std::nullopt);
    record.template add<Field::gap_device>(gap.device);
    record.template add<Field::gap_kernels>(names);
    record.template add<Field::gap_total>(kernels.complete || kernels.total != 0 ? Maybe(kernels.total)
                                                                                 : Maybe());
    record.template add<Field::gap_complete>(kernels.complete && !few);
    record.template add<Field::gap_have>(have.all());
    record.template add<Field::gap_need>(name.view());
  });
}

void note_gap_for_device(const DeviceCode& code, std::uint32_t number, std::optional<std::uint64_t> device,
                         Why why) noexcept {
  const DeviceFacts* facts = device_facts(device);
  if (facts == nullptr || selection_for(code, facts->cc).choice != image::Choice::none) return;
  const Gap gap{
      key_of(code, number, *device, {}), *device % (kAccounts / 2), device, {facts->cc, image::Suffix::none}};
  write_gap(code, gap, number, why);
}

void note_gaps_for_targets(const DeviceCode& code, std::uint32_t number, Why why) noexcept {
  constexpr std::uint64_t kTargets = ~0ULL;
  std::size_t account = 0;
  for (const image::Arch target : options().targets) {
    account = (account + 1) % (kAccounts / 2);
    if (selection_for(code, target.cc).choice != image::Choice::none) continue;
    write_gap(code, {key_of(code, number, kTargets, target), kAccounts / 2 + account, {}, target}, number,
              why);
  }
}

void note_gaps_for(const DeviceCode& code, std::optional<std::uint64_t> device, bool targets,
                   Why why) noexcept {
  if (code.image_count == 0) return;
  const std::uint32_t number = begin_report();
  if (number == 0) return;
  note_gap_for_device(code, number, device, why);
  if (targets) note_gaps_for_targets(code, number, why == Why::failed ? Why::known : why);
}

}  // namespace

void note_gaps(const DeviceCode& code, std::optional<std::uint64_t> device) noexcept {
  note_gaps_for(code, device, true, Why::known);
}

void note_gaps_of_failure(const DeviceCode& code, std::optional<std::uint64_t> device,
                          bool of_load) noexcept {
  note_gaps_for(code, device, true, of_load ? Why::known : Why::failed);
}

void note_gaps_of_load(const DeviceCode& code, std::optional<std::uint64_t> device,
                       const void* caller) noexcept {
  const bool chosen =
      code.object == 0 && !options().targets.empty() && is_nvidia_library(find_loaded_object(caller).path);
  note_gaps_for(code, device, !chosen, Why::loading);
}

image::Selection selection_for(const DeviceCode& code, image::ComputeCapability device) noexcept {
  return select_image(code.candidates(), platform_of(device), code.packaging);
}

}  // namespace kshim::shim
