// SPDX-License-Identifier: Apache-2.0
#include "boot/export_tables.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "boot/handshake.h"
#include "context/context.h"
#include "device/product.h"
#include "entry/entry.h"
#include "launch/stream.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

enum class Table : unsigned {
#define KSHIM_SIM_TABLE(name, first, last, slots, sized) name,
#include "boot/export_tables.def"
  count
};
constexpr std::size_t kTableCount = static_cast<std::size_t>(Table::count);
constexpr std::size_t kMaxSlots = 64;

struct Definition {
  const char* name;
  std::uint64_t first, last;  ///< the UUID, read as big-endian numbers
  std::size_t slots;
  bool sized;
};
constexpr Definition kDefinitions[] = {
#define KSHIM_SIM_TABLE(name, first, last, slots, sized) {#name, first, last, slots, sized},
#include "boot/export_tables.def"
};

void name_slot(Table table, std::size_t slot) {
  static std::array<std::array<std::atomic<bool>, kMaxSlots>, kTableCount> named{};
  const auto index = static_cast<std::size_t>(table);
  if (log_level() < LogLevel::info || named[index][slot].exchange(true)) return;
  log_line(LogLevel::info, "slot " + std::to_string(slot) + " of export table " + kDefinitions[index].name +
                               " is not simulated: answered 801 CUDA_ERROR_NOT_SUPPORTED");
}

/// A caller may pass any arguments: both ABIs let a function ignore them.
template <Table table, std::size_t slot>
CUresult unknown_slot() {
  name_slot(table, slot);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// cudart_interface
// ------------------------------------------------------------------------------------------------------

CUresult module_from_image(CUmodule* out, const void* image) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return load_module(*context, image, out);
}
CUresult module_from_wrapper(CUmodule* out, const void* wrapper) { return module_from_image(out, wrapper); }
CUresult module_from_wrapper_with_options(CUmodule* out, const void* wrapper, void*, void*, unsigned) {
  return module_from_image(out, wrapper);
}
CUresult module_from_header(const void* header, CUmodule* out, void*, void*, unsigned) {
  return module_from_image(out, header);
}
CUresult primary_without_retaining(CUcontext* out, CUdevice ordinal) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Device* device = device_at(ordinal);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *out = primary_context(*device).handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult notice(std::size_t) { return CUDA_SUCCESS; }
CUresult load_compilers() { return CUDA_SUCCESS; }

// callback_hooks: memory where a profiler would leave its subscriptions; zero means that there is none
// -----------------

template <std::size_t size>
CUresult hand_out(void** buffer, std::size_t* count) {
  static std::array<std::uint32_t, size> words{};
  if (buffer == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *buffer = words.data();
  *count = size;
  return CUDA_SUCCESS;
}
CUresult callback_buffer(void** buffer, std::size_t* count) { return hand_out<1024>(buffer, count); }
CUresult callback_flags(void** buffer, std::size_t* count) { return hand_out<14>(buffer, count); }

// tools_tls, context_storage, context_checks
// ----------------------------------------------------------------------------

CUresult thread_context(CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = current_context();
  *out = context != nullptr ? context->handle<CUcontext>() : nullptr;
  return CUDA_SUCCESS;
}

Context* named_or_current(CUcontext handle) noexcept {
  return handle != nullptr ? object_of<Context>(handle) : current_context();
}
CUresult storage_put(CUcontext handle, void* key, void* value, LocalStorage::Destructor destructor) {
  Context* context = named_or_current(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context->storage.put(key, value, destructor);
  return CUDA_SUCCESS;
}
CUresult storage_delete(CUcontext handle, void* key) {
  Context* context = named_or_current(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->storage.remove(key) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
// On the path of every launch.
CUresult storage_get(void** value, CUcontext handle, void* key) {
  const Context* context = named_or_current(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->storage.get(key, *value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult check_context(CUcontext, std::uint32_t* out, void**) {
  if (out != nullptr) *out = 0;
  return CUDA_SUCCESS;
}
CUresult check_state() { return CUDA_SUCCESS; }

// unique_ids, module_functions
// ------------------------------------------------------------------------------------------

CUresult context_id(CUcontext handle, std::uint64_t* out) {
  const Context* context = named_or_current(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = context->id;
  return CUDA_SUCCESS;
}
CUresult stream_object(CUcontext handle, CUstream stream, void** out, std::uint32_t per_thread) {
  Context* context = named_or_current(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stream == nullptr && per_thread != 0) stream = CU_STREAM_PER_THREAD;
  Stream* found = context->stream(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = found->handle<void*>();
  return CUDA_SUCCESS;
}
CUresult stream_id(CUcontext, void* object, std::uint64_t* out) {
  const Stream* stream = object_of<Stream>(object);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = stream->id;
  return CUDA_SUCCESS;
}
/// The one slot where success is 1.
int walk_functions(CUcontext, CUmodule module, void (*callback)(void*, CUfunction), void* user) {
  return each_function(module, [&](CUfunction function) { callback(user, function); }) == CUDA_SUCCESS ? 1
                                                                                                       : 0;
}

CUresult create_context(CUcontext* out, unsigned flags, CUdevice device) {
  return entry::cuCtxCreate_v2(out, flags, device);
}

CUresult integrity_check(std::uint32_t runtime_version, std::uint64_t unix_seconds, std::uint64_t* answer);

// The tables
// ------------------------------------------------------------------------------------------------------------

/// The function in a slot: an unknown one unless a row says otherwise.
template <Table table, std::size_t slot>
constexpr auto kFunction = &unknown_slot<table, slot>;
#define KSHIM_SIM_SLOT(table, slot, function) \
  template <>                                 \
  constexpr auto kFunction<Table::table, slot> = &(function);
#include "boot/export_tables.def"

using Slots = std::array<void*, kMaxSlots>;
constexpr std::size_t slot_count(Table table) { return kDefinitions[static_cast<std::size_t>(table)].slots; }
constexpr bool has_size(Table table) { return kDefinitions[static_cast<std::size_t>(table)].sized; }

// Constant tables, as in a driver: the dynamic linker relocates them and makes them read-only, which
// tests/e2e/export_tables.py checks. A hook that patches a slot has to change that. Null after the last slot.
template <Table table, class Numbers>
struct Constant;
template <Table table, std::size_t... slot>
struct Constant<table, std::index_sequence<slot...>> {
  static const Slots kSlots;
};
template <Table table, std::size_t... slot>
const Slots Constant<table, std::index_sequence<slot...>>::kSlots = {
    (slot == 0 && has_size(table) ? reinterpret_cast<void*>(slot_count(table) * sizeof(void*))
     : slot < slot_count(table)   ? reinterpret_cast<void*>(kFunction<table, slot>)
                                  : nullptr)...};

void* const* slots_of(Table table) noexcept {
  static constexpr void* const* kTables[] = {
#define KSHIM_SIM_TABLE(name, first, last, slots, sized) \
  Constant<Table::name, std::make_index_sequence<kMaxSlots>>::kSlots.data(),
#include "boot/export_tables.def"
  };
  return kTables[static_cast<std::size_t>(table)];
}

CUresult integrity_check(std::uint32_t runtime_version, std::uint64_t unix_seconds, std::uint64_t* answer) {
  void* const* integrity = slots_of(Table::integrity);
  const HandshakeProcess process{static_cast<std::uint32_t>(driver_version()),
                                 static_cast<std::uint32_t>(::getpid()),
                                 static_cast<std::uint32_t>(::pthread_self()),
                                 slots_of(Table::cudart_interface),
                                 integrity,
                                 integrity[1]};
  const auto result = answer_handshake(runtime_version, unix_seconds, process, devices());
  std::memcpy(answer, result.data(), sizeof result);
  return CUDA_SUCCESS;
}

std::uint64_t big_endian(const char* bytes) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

const void* find_export_table(const CUuuid& id) noexcept {
  const std::uint64_t first = big_endian(id.bytes);
  const std::uint64_t last = big_endian(id.bytes + 8);
  for (std::size_t i = 0; i < kTableCount; ++i) {
    if (kDefinitions[i].first == first && kDefinitions[i].last == last)
      return slots_of(static_cast<Table>(i));
  }
  return nullptr;
}

}  // namespace kshim::sim
