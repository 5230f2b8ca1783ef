// SPDX-License-Identifier: Apache-2.0
// gap records: device code without an image for the current device, or, if it lies in no file, for one of
// KSHIM_TARGET.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/driver_info.h"
#include "guest/insert_only_set.h"
#include "track/device_code.h"
#include "track/fatbin_registry.h"
#include "track/object_records.h"

namespace kshim::shim {

/// Lies in zeroed memory.
class Gaps {
 public:
  /// The other members of State that a gap needs.
  struct Scene {
    Report& report;
    const DriverInfo& driver;
    ObjectRecords& objects;
  };
  /// After a failure in the module: writes a gap for the device, if there is one, once a report. Unless the
  /// load itself failed, rewrites it with the full list of kernels, even if a shortened one was written
  /// before.
  void note_failure(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                    bool of_load) noexcept;
  /// After a load by `caller`: the same, and of an image that lies in no file the gaps for KSHIM_TARGET, with
  /// its `kernels`.
  void note_load(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                 const void* caller, const KernelNames* kernels) noexcept;
  /// Whether note_load() would write something.
  bool is_new(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
              const void* caller) noexcept;

 private:
  /// The reason for a gap record.
  enum class Why : std::uint8_t {
    known,  ///< the module is loaded or registered
    failed  ///< a call other than its load failed
  };
  struct Gap {
    std::uint64_t key = 0;
    std::uint32_t report = 0;
    std::optional<std::uint64_t> device;
    image::Arch need;
  };

  template <class Visit>
  static void for_each(const Scene& scene, const DeviceCode& code, std::optional<std::uint64_t> device,
                       bool targets, const Visit& visit) noexcept;
  void write(const Scene& scene, const DeviceCode& code, const Gap& gap, Why why,
             const KernelNames* loose) noexcept;
  bool choose_names(const Gap& gap, Why why, bool first, const KernelNames& kernels, bool& few) noexcept;

  std::uint32_t report_;      ///< the report that name_bytes_ belongs to
  std::uint64_t name_bytes_;  ///< of the names that its gaps have listed
  // A collision or a full neighborhood loses a gap that the command finds again in the file.
  InsertOnlySet<16384> written_;
};

}  // namespace kshim::shim
