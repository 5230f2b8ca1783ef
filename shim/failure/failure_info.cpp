// SPDX-License-Identifier: Apache-2.0
#include "failure/failure_info.h"

#include <algorithm>

#include "cuda/call_args.h"
#include "cuda/cuda_libraries.h"
#include "cuda/driver_info.h"
#include "cuda/driver_log.h"
#include "cuda/driver_table.h"
#include "guest/safe_memory.h"
#include "kshim/base/cuda_error.h"
#include "kshim/base/hash.h"
#include "process/loaded_objects.h"
#include "track/fatbin_registry.h"
#include "track/handle_names.h"

namespace kshim::shim {
namespace {

constexpr abi::Result kNotFound = 500;

report::LayerRow layer_row(const CallArgs& facts) noexcept {
  const HookRow& row = row_of(facts.hook);
  const bool runtime = row.layer == Layer::runtime;
  const CudaError* error = find_cuda_error(facts.code);
  const char* name = error == nullptr ? nullptr : runtime ? error->runtime_name : error->driver_name;
  return {runtime ? "runtime" : "driver", row.name, static_cast<std::uint64_t>(facts.code),
          name == nullptr ? std::string_view() : std::string_view(name)};
}

/// Whether the call looks up a kernel, not a variable.
bool asks_for_kernel(Hook hook) noexcept {
  return hook == Hook::cuModuleGetFunction || hook == Hook::cuLibraryGetKernel ||
         hook == Hook::cudaLibraryGetKernel;
}

/// Adds what one call's arguments say about the kernel and its module.
void gather_call(const CallArgs& call, const FailureSources& sources, FailureInfo& out, std::uint64_t& module,
                 std::uintptr_t& wrapper) noexcept {
  const HandleInfo handle = sources.handles.recall(call.handle);
  const Registered registered = find_registered(call.host);
  if (out.kernel.empty() && asks_for_kernel(call.hook) && call.symbol != nullptr)
    out.kernel = readable_text(call.symbol);
  if (out.kernel.empty()) out.kernel = handle.name;
  if (out.kernel.empty()) out.kernel = registered.kernel;
  if (module == 0) module = handle.module;
  if (module == 0) module = sources.handles.recall(call.container).module;
  if (wrapper == 0) wrapper = registered.wrapper;
  if (out.object == 0 && call.host != 0) out.object = find_object_in_use(call.host).identity;
}

/// Errors about device code. For these only failed loads are distinguished by the failing call.
bool is_about_code(abi::Result code) noexcept {
  return code == 98 || code == 200 || code == 209 || code == 218 || (code >= 221 && code <= 223) ||
         code == kNotFound;
}

bool is_library_probe(const FailureInfo& facts) noexcept {
  return facts.stage != Stage::launch && is_nvidia_library(file_of_identity(facts.owner).path);
}

}  // namespace

void gather(const DriverFailure* driver, const CallArgs* runtime, const FailureSources& sources,
            FailureInfo& out) noexcept {
  const CallArgs& outer = runtime != nullptr ? *runtime : driver->facts;
  out.hook = outer.hook;
  // Only kernel<<<...>>> calls it, so the failure is a launch.
  out.stage = outer.hook == Hook::__cudaGetKernel ? Stage::launch : row_of(outer.hook).stage;
  out.code = outer.code;
  out.runtime = runtime != nullptr;
  std::uint64_t module = 0;
  std::uintptr_t wrapper = 0;
  if (driver != nullptr) {
    out.layers[out.layer_count++] = layer_row(driver->facts);
    out.device = driver->device;
    module = driver->module;
    gather_call(driver->facts, sources, out, module, wrapper);
  }
  if (runtime != nullptr) {
    out.layers[out.layer_count++] = layer_row(*runtime);
    gather_call(*runtime, sources, out, module, wrapper);
  }
  if (!sources.modules.find(module, out.module) && wrapper != 0) {
    // The runtime returned a cached error, or did not call the driver: the registration identifies the code.
    DeviceCode code;
    examine_memory(wrapper, LoadResult::loaded, code);
    if (!sources.modules.find_code(code.address, out.module)) out.module.code = code;
  }
  out.module_written = out.module.record != 0 && out.module.report == sources.report;
  if (out.module.code.object != 0) out.object = out.module.code.object;
  out.owner = out.object != 0 ? out.object : find_object_in_use(outer.caller).identity;
}

void gather(const Refusal& refusal, std::optional<std::uint64_t> device, FailureInfo& out) noexcept {
  const HookRow& row = row_of(refusal.hook);
  out.hook = refusal.hook;
  out.stage = row.stage;
  out.code = refusal.code;
  out.layers[out.layer_count++] = {row.layer == Layer::nvrtc ? "nvrtc" : "nvjitlink", row.name,
                                   static_cast<std::uint64_t>(refusal.code), refusal.code_name};
  out.device = device;
  out.object = refusal.library;
  out.owner = find_object_in_use(refusal.caller).identity;
  out.refusal = &refusal;
}

std::uint64_t key_of(const FailureInfo& facts) noexcept {
  const auto mix = [](std::uint64_t hash, std::uint64_t value) {
    return key_hash(std::as_bytes(std::span(&value, 1)), hash);
  };
  std::uint64_t key = kHashSeed;
  if (facts.layer_count == 0) {
    for (std::string_view left = facts.driver_log; !left.empty();) {
      const std::string_view line = left.substr(0, left.find('\n'));
      key = key_hash(bytes_of(message_of(line)), key);
      left.remove_prefix(std::min(line.size() + 1, left.size()));
    }
    return key;
  }
  key = mix(kHashSeed, static_cast<std::uint64_t>(facts.code));
  key = mix(key, facts.device.value_or(~0ULL));
  if (code_has(facts.code, code_trait::sticky)) return key;
  key = mix(key, static_cast<std::uint64_t>(facts.stage));
  key = mix(key, facts.owner);
  if (facts.refusal != nullptr)
    return key_hash(bytes_of(facts.refusal->asked.view()), mix(key, facts.refusal->library));
  if (is_library_probe(facts)) return key;
  // A launch of a kernel, or a look-up of one, is one operation, independent of the number of calls. A load
  // by another function is another attempt.
  const bool is_launch = facts.stage == Stage::launch && !facts.kernel.empty();
  if (facts.stage == Stage::load || (!is_about_code(facts.code) && !is_launch))
    key = mix(key, index_of(facts.hook));
  key = mix(key, facts.module.code.key());
  return key_hash(bytes_of(facts.kernel), key);
}

bool deserves_notice(const FailureInfo& facts) noexcept {
  switch (facts.stage) {
    case Stage::launch:
      return true;
    case Stage::load:
    case Stage::link:
      return !is_library_probe(facts);
    case Stage::lookup:
      // Programs look variables up to find out whether they exist.
      return !is_library_probe(facts) && (facts.code != kNotFound || !facts.kernel.empty());
    case Stage::compile:
      return facts.refusal != nullptr && facts.refusal->definitive && !is_library_probe(facts);
    default:
      return false;
  }
}

void fill_notice(const FailureInfo& facts, const DriverInfo& driver, Notice& out, ArchList& have,
                 image::ShortName& arch) noexcept {
  out.code = facts.code;
  out.runtime = facts.runtime;
  out.api = row_of(facts.hook).name;
  out.kernel = facts.kernel;
  out.object = file_of_identity(facts.object).path;
  out.device = facts.device;
  out.unwatched_table = unwatched_runtime() != 0;
  if (facts.refusal != nullptr) {
    out.compiler = row_of(facts.hook).layer == Layer::nvrtc ? "NVRTC" : "nvJitLink";
    out.compiler_version = facts.refusal->version.view();
    out.asked = facts.refusal->asked.view();
    out.code_name = facts.refusal->code_name;
    out.have = {facts.refusal->known, facts.refusal->known_count};
    return;
  }
  const DeviceCode& code = facts.module.code;
  code.list(have);
  out.have = have.all();
  if (const DeviceInfo* device = driver.device(facts.device)) {
    arch = to_name(image::ImageKind::cubin, image::Arch{device->cc, image::Suffix::none});
    out.device_name = device->name.view();
    out.device_arch = arch.view();
    if (code.image_count != 0 &&
        code.selection_for(driver.platform_of(device->cc)).choice == image::Choice::none)
      out.need = arch.view();
  }
}

}  // namespace kshim::shim
