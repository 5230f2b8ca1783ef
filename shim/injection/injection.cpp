// SPDX-License-Identifier: Apache-2.0
// libkshim-injection.so, for CUDA_INJECTION64_PATH: cuInit opens it in processes that LD_PRELOAD does not
// reach (static programs, dlmopen, a cleared LD_PRELOAD). Where libkshim.so is not there, it writes a report
// that says so, and the driver's words of each failed call with thread and stack. It hooks nothing.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "core/state.h"
#include "cuda/driver_log.h"
#include "guest/options.h"
#include "process/loaded_objects.h"
#include "process/stack/native.h"

// The linker gives the unwinder, and with it this file, replacements of libc's functions (CMakeLists.txt).
extern "C" void* __real_dlsym(void* library, const char* name);

namespace kshim::shim {

/// The section that the runtime's wrappers have in libkshim.so (failure/cudart_frame.cpp): here there are
/// none.
[[gnu::used, gnu::section("kshim_runtime")]] void no_wrappers() noexcept {}

namespace {

using report::Field;
using report::RecordType;

std::atomic<void*> g_log{nullptr};  ///< the handle of the callback

/// The library that CUDA_INJECTION64_PATH named before. One that cannot be opened changes nothing, as it does
/// without kshim.
int start_next() noexcept {
  constexpr std::string_view kVariable = "KSHIM_INJECTION_NEXT=";
  const char* path = nullptr;
  for (char** entry = __environ; entry != nullptr && *entry != nullptr && path == nullptr; ++entry)
    if (std::strncmp(*entry, kVariable.data(), kVariable.size()) == 0) path = *entry + kVariable.size();
  if (path == nullptr || *path == '\0') return 1;
  void* const library = dlopen(path, RTLD_NOW);
  void* const start = library == nullptr ? nullptr : __real_dlsym(library, "InitializeInjection");
  dlerror();
  return start == nullptr ? 1 : reinterpret_cast<int (*)()>(start)();
}

/// The list of loaded files is that of the program's namespace. Where this file is not in it, it is in
/// another one, or the program is static: libkshim.so is in neither.
bool has_shim() noexcept {
  bool found = false;
  on_new_stack([&] {
    if (!find_loaded_object(reinterpret_cast<const void*>(&start_next))) return;
    for_each_loaded_object(
        [](void* context, const LoadedObject& object) {
          *static_cast<bool*>(context) = object.elf.defines_version("KSHIM_1");
          return !*static_cast<bool*>(context);
        },
        &found);
  });
  return found;
}

void write_absence(Report& report) noexcept {
  char exe[4096];
  const long size = raw::read_link_at(AT_FDCWD, "/proc/self/exe", exe, sizeof exe);
  report.write<RecordType::bypass>([&](auto& record) {
    record.template add<Field::bypass_path>(
        std::string_view(exe, size > 0 ? static_cast<std::size_t>(size) : 0));
    record.template add<Field::bypass_how>(std::string_view("absent"));
    record.template add<Field::bypass_names>(std::span<const std::string_view>());
  });
}

/// The driver calls this on the thread whose call fails, once a line.
void on_message(void* /*data*/, abi::Enum /*level*/, char* message, std::size_t length) noexcept {
  if (message == nullptr || !keep_line({message, length})) return;
  DriverLines lines;
  SlowPath().run([&](State& state) {
    // A child of fork has a report of its own.
    const std::uint32_t before = current_report();
    if (state.report.begin_at_failure() != before) write_absence(state.report);
    state.failures.add(state.failure_scene(), lines.last());
  });
}

/// The driver's function, in whatever namespace this is.
void* driver_symbol(const char* name) noexcept {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = driver == nullptr ? nullptr : __real_dlsym(driver, name);
  if (driver != nullptr) dlclose(driver);
  dlerror();
  return found;
}

void listen() noexcept {
  using Register = abi::Result (*)(LogCallback, void*, void** handle);
  const auto call = reinterpret_cast<Register>(driver_symbol("cuLogsRegisterCallback"));
  void* handle = nullptr;
  if (call != nullptr && prepare_lines() && call(on_message, nullptr, &handle) == 0) g_log.store(handle);
}

[[gnu::destructor]] void end() {
  if (current_report() == 0) return;
  bool in_handler = true;
  SlowPath().run([&](State&) { in_handler = is_in_signal_handler(); });
  using Unregister = abi::Result (*)(void* handle);
  if (void* const handle = g_log.exchange(nullptr); handle != nullptr && !in_handler && !has_parents_report())
    if (const auto call = reinterpret_cast<Unregister>(driver_symbol("cuLogsUnregisterCallback")))
      call(handle);
  SlowPath().run([](State& state) {
    state.failures.flush_repeats(state.report);
    state.report.end();
  });
}

}  // namespace
}  // namespace kshim::shim

extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  using namespace kshim::shim;
  static std::atomic<bool> g_started{false};
  if (g_started.exchange(true)) return 1;  // a chain that leads back here
  const int result = start_next();
  if (!options().enabled || has_shim()) return result;
  SlowPath().run([](State& state) {
    if (state.report.begin() != 0) write_absence(state.report);
  });
  listen();
  return result;
}
