// SPDX-License-Identifier: Apache-2.0
#include "failure/gaps.h"

#include <span>

#include "cuda/cuda_libraries.h"
#include "guest/options.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

/// A runtime that loads everything at once, on a device that nothing fits, has thousands of kernels to name.
/// The gaps of a report list all names until these are so many bytes; later gaps list a few, and how many
/// there are. The file has the rest. A module in which something else fails is listed in full.
constexpr std::uint64_t kNamesInFull = 131072;
constexpr std::size_t kFewNames = 2;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29U);
}

std::uint64_t key_of(const DeviceCode& code, std::uint32_t number, std::uint64_t device,
                     image::Arch target) noexcept {
  const std::uint64_t key = mix(number, device);
  return mix(mix(key, target.cc.number() * 4U + static_cast<unsigned>(target.suffix)), code.key());
}

}  // namespace

/// Whether to write the gap; sets `few` to write only the first names. `first`: it is not in the report yet.
bool Gaps::choose_names(const Gap& gap, Why why, bool first, const KernelNames& kernels, bool& few) noexcept {
  const std::uint64_t in_full = mix(gap.key, kNamesInFull);
  few = false;
  if (!first) return kernels.count > kFewNames && written_.is_first(in_full);
  few = why != Why::failed && kernels.count > kFewNames && name_bytes_ >= kNamesInFull;
  if (!few) written_.is_first(in_full);
  return true;
}

void Gaps::write(const Scene& scene, const DeviceCode& code, const Gap& gap, Why why,
                 const KernelNames* loose) noexcept {
  const bool first = written_.is_first(gap.key);
  if (!first && why != Why::failed) return;
  KernelNames registered;
  list_registered(code.address, registered);
  const KernelNames& kernels = registered.count == 0 && loose != nullptr ? *loose : registered;
  bool few = false;
  if (report_ != gap.report) name_bytes_ = 0;
  report_ = gap.report;
  if (!choose_names(gap, why, first, kernels, few)) return;
  const std::span<const std::string_view> names = kernels.all().first(few ? kFewNames : kernels.count);
  for (const std::string_view name : names) name_bytes_ += name.size();
  ArchList have;
  code.list(have);
  const image::ShortName name = to_name(image::ImageKind::cubin, gap.need);
  scene.objects.announce(scene.report, code.object, {});
  const Maybe object = code.object == 0 ? Maybe() : Maybe(code.object);
  scene.report.write<RecordType::gap>([&](auto& record) {
    record.template add<Field::gap_object>(object);
    record.template add<Field::gap_offset>(object ? Maybe(code.offset) : Maybe());
    record.template add<Field::gap_device>(gap.device);
    record.template add<Field::gap_kernels>(names);
    record.template add<Field::gap_total>(kernels.complete || kernels.total != 0 ? Maybe(kernels.total)
                                                                                 : Maybe());
    record.template add<Field::gap_complete>(kernels.complete && !few);
    record.template add<Field::gap_have>(have.all());
    record.template add<Field::gap_need>(name.view());
  });
}

/// Calls visit(gap) for the device, if nothing in the module fits it, and for each such target.
template <class Visit>
void Gaps::for_each(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                    bool targets, const Visit& visit) noexcept {
  const std::uint32_t number = code.image_count == 0 ? 0 : scene.report.begin();
  if (number == 0) return;
  const auto lacks = [&](image::ComputeCapability cc) {
    return code.selection_for(scene.driver.platform_of(cc)).choice == image::Choice::none;
  };
  const DeviceInfo* facts = scene.driver.device(device);
  if (facts != nullptr && lacks(facts->cc))
    visit(Gap{key_of(code, number, *device, {}), number, device, {facts->cc, image::Suffix::none}});
  if (!targets) return;
  constexpr std::uint64_t kTargets = ~0ULL;
  for (const image::Arch target : options().targets)
    if (lacks(target.cc)) visit(Gap{key_of(code, number, kTargets, target), number, {}, target});
}

void Gaps::note_failure(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                        bool of_load) noexcept {
  for_each(scene, code, device, false,
           [&](const Gap& gap) { write(scene, code, gap, of_load ? Why::known : Why::failed, nullptr); });
}

namespace {

/// What lies in a file, the command reads there. What an NVIDIA library loads from memory, it has picked for
/// this device.
bool targets_count(const DeviceCode& code, const void* caller) noexcept {
  return code.is_loose() && !options().targets.empty() && !is_nvidia_library(find_object_in_use(caller).path);
}

}  // namespace

void Gaps::note_load(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                     const void* caller, const KernelNames* kernels) noexcept {
  for_each(scene, code, device, targets_count(code, caller),
           [&](const Gap& gap) { write(scene, code, gap, Why::known, kernels); });
}

bool Gaps::is_new(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                  const void* caller) noexcept {
  bool found = false;
  for_each(scene, code, device, targets_count(code, caller),
           [&](const Gap& gap) { found = found || !written_.has(gap.key); });
  return found;
}

}  // namespace kshim::shim
