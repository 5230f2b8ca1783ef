// SPDX-License-Identifier: Apache-2.0
#include "gaps.h"

#include "announce.h"
#include "driver_facts.h"
#include "options.h"
#include "registration.h"
#include "report_file.h"
#include "seen_keys.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

// A collision or a full neighbourhood loses a gap that the command finds again in the file.
SeenKeys<16384> g_written;

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

/// `loading`: the image is still where the driver was told to look.
void write_gap(const DeviceCode& code, std::optional<std::uint64_t> device, image::Arch need,
               bool loading) noexcept {
  KernelNames kernels;
  registered_kernels(code.address, kernels);
  if (loading && kernels.count == 0) loose_kernels(code, kernels);
  ArchList have;
  code.list(have);
  const image::ShortName name = to_name(image::ImageKind::cubin, need);
  announce_object(code.object, {});
  const std::optional<std::uint64_t> object =
      code.object == 0 ? std::nullopt : std::optional<std::uint64_t>(code.object);
  write_record<RecordType::gap>([&](auto& record) {
    record.template add<Field::gap_object>(object);
    record.template add<Field::gap_offset>(object ? std::optional<std::uint64_t>(code.offset) : std::nullopt);
    record.template add<Field::gap_device>(device);
    record.template add<Field::gap_kernels>(kernels.all());
    record.template add<Field::gap_complete>(kernels.complete);
    record.template add<Field::gap_have>(have.all());
    record.template add<Field::gap_need>(name.view());
  });
}

void note_gaps_for(const DeviceCode& code, std::optional<std::uint64_t> device, bool targets,
                   bool loading) noexcept {
  if (code.image_count == 0) return;
  const std::uint32_t number = begin_report();
  if (number == 0) return;
  constexpr std::uint64_t kTargets = ~0ULL;
  if (const DeviceFacts* facts = device_facts(device);
      facts != nullptr && selection_for(code, facts->cc).choice == image::Choice::none &&
      g_written.is_first(key_of(code, number, *device, {})))
    write_gap(code, device, {facts->cc, image::Suffix::none}, loading);
  if (!targets) return;
  for (const image::Arch target : options().targets)
    if (selection_for(code, target.cc).choice == image::Choice::none &&
        g_written.is_first(key_of(code, number, kTargets, target)))
      write_gap(code, std::nullopt, target, loading);
}

}  // namespace

void note_gaps(const DeviceCode& code, std::optional<std::uint64_t> device) noexcept {
  note_gaps_for(code, device, true, false);
}

void note_gaps_of_load(const DeviceCode& code, std::optional<std::uint64_t> device,
                       const void* caller) noexcept {
  const bool chosen =
      code.object == 0 && !options().targets.empty() && is_nvidia_library(object_at(caller).path);
  note_gaps_for(code, device, !chosen, true);
}

image::Selection selection_for(const DeviceCode& code, image::ComputeCapability device) noexcept {
  return select_image(code.candidates(), platform_of(device), code.packaging);
}

}  // namespace kshim::shim
