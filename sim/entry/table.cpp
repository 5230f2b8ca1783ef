// SPDX-License-Identifier: Apache-2.0
#include "entry/table.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/log.h"
#include "entry/thunks.h"

extern "C" {
// Written once, by the constructor below, before any stub can be called.
[[gnu::visibility("hidden")]] void* kshim_sim_slots[kshim::sim::kRowCount];
[[gnu::visibility("hidden")]] extern void* const kshim_sim_stubs[kshim::sim::kRowCount];
}

namespace kshim::sim {

const char* const kSymbols[kRowCount] = {
#define KSHIM_SIM_ENTRY(symbol, name, introduced) #symbol,
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base) #symbol,
#include "entry_points.def"
#undef KSHIM_SIM_ENTRY
#undef KSHIM_SIM_ENTRY_PER_THREAD
};

namespace {

struct RowInfo {
  std::string_view name;
  int introduced;
  bool per_thread;
};
constexpr std::array<RowInfo, kRowCount> kRows = {{
#define KSHIM_SIM_ENTRY(symbol, name, introduced) {#name, introduced, false},
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base) {#name, introduced, true},
#include "entry_points.def"
#undef KSHIM_SIM_ENTRY
#undef KSHIM_SIM_ENTRY_PER_THREAD
}};

std::array<std::atomic<bool>, kRowCount> g_named{};

template <Row row, class Signature, auto call>
void* choose(bool implemented, bool trace) noexcept {
  using T = Thunk<row, Signature>;
  if (!implemented) {
    return trace ? reinterpret_cast<void*>(&T::template traced<&T::template logged<&T::missing>>)
                 : reinterpret_cast<void*>(&T::template logged<&T::missing>);
  }
  return trace ? reinterpret_cast<void*>(&T::template traced<&T::template logged<call>>)
               : reinterpret_cast<void*>(&T::template logged<call>);
}

// One small function a row, called in a loop: all choices in one function are one basic block of thousands of
// nodes, over which clang 14 spends minutes.
using Choice = void* (*)(bool trace) noexcept;
constexpr std::array<Choice, kRowCount> kChoices = {{
#define KSHIM_SIM_ENTRY(symbol, name, introduced)                                                     \
  [](bool trace) noexcept {                                                                           \
    return choose<Row::symbol, decltype(::symbol), &entry::symbol>(&entry::symbol != nullptr, trace); \
  },
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base)                    \
  [](bool trace) noexcept {                                                           \
    return choose<Row::symbol, decltype(::symbol),                                    \
                  &Thunk<Row::symbol, decltype(::symbol)>::per_thread<&entry::base>>( \
        &entry::base != nullptr, trace);                                              \
  },
#include "entry_points.def"
#undef KSHIM_SIM_ENTRY
#undef KSHIM_SIM_ENTRY_PER_THREAD
}};

// Before other constructors: a library linked against libcuda.so.1 may call it from its own.
[[gnu::constructor(101)]] void fill_slots() noexcept {
  const bool trace = trace_enabled();
  for (unsigned row = 0; row < kRowCount; ++row) kshim_sim_slots[row] = kChoices[row](trace);
}

}  // namespace

int introduced(unsigned row) noexcept { return kRows[row].introduced; }

CUresult answer_not_supported(Row row) noexcept {
  const auto index = static_cast<unsigned>(row);
  if (g_named[index].exchange(true, std::memory_order_relaxed)) return CUDA_ERROR_NOT_SUPPORTED;
  log_line(LogLevel::info,
           std::string(kSymbols[index]) + " is not simulated: answered 801 CUDA_ERROR_NOT_SUPPORTED");
  if (const char* path = std::getenv("KSHIM_SIM_GAPS"); path != nullptr) {
    const int file = ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    const std::string line = std::string(kSymbols[index]) + '\n';
    if (file >= 0) [[maybe_unused]]
      const auto written = ::write(file, line.data(), line.size());
    if (file >= 0) ::close(file);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

ProcAddress find_proc(std::string_view name, int cuda_version, int driver_version,
                      std::uint64_t flags) noexcept {
  const bool want_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  ProcAddress found;
  int newest = 0;
  bool newest_thread = false;
  for (unsigned i = 0; i < kRowCount; ++i) {
    const RowInfo& row = kRows[i];
    if (row.name != name || row.introduced > driver_version || (row.per_thread && !want_thread)) continue;
    if (row.introduced > cuda_version) {
      if (found.function == nullptr) found.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      continue;
    }
    // A per-thread twin wins over its legacy function of the same age; rows of one name ascend in age.
    if (row.introduced < newest || (row.introduced == newest && newest_thread && !row.per_thread)) continue;
    newest = row.introduced;
    newest_thread = row.per_thread;
    found = {kshim_sim_stubs[i], CU_GET_PROC_ADDRESS_SUCCESS};
  }
  return found;
}

}  // namespace kshim::sim
