// SPDX-License-Identifier: Apache-2.0
// A driver (libcuda.so.1) or a runtime (libcudart.so.12) that takes no lock, allocates nothing, waits for
// nothing and calls no other library: whatever blocks or ends a program that uses it comes from elsewhere. It
// exports every hooked function. One call of it can be made to never return. The driver's error log has no
// lock either: it says the function's name to one callback.
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

#if defined(PLAIN_DRIVER)
#define PLAIN_SETTINGS plain_driver
#else
#define PLAIN_SETTINGS plain_runtime
#endif
#define PLAIN_EXPORT extern "C" __attribute__((visibility("default")))

PLAIN_EXPORT PlainSettings PLAIN_SETTINGS;
PlainSettings PLAIN_SETTINGS;

namespace {

using Word = long;
using Callback = void (*)(void*, unsigned, char*, unsigned long);
[[maybe_unused]] volatile Callback g_callback = nullptr;

bool same(const char* a, const char* b) {
  for (; *a != 0 && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

bool begins(const char* name, const char* prefix) {
  for (; *prefix != 0; ++name, ++prefix)
    if (*name != *prefix) return false;
  return true;
}

template <class T>
Word put(Word to, T value) {
  if (to != 0) *reinterpret_cast<T*>(to) = value;
  return 0;
}

/// Handles are few and come back, as those of a driver that reuses memory do.
Word handle() {
  static volatile unsigned long g_next = 0;
  g_next = g_next + 1;
  return static_cast<Word>(0x7000'0000UL + g_next % 64 * 64);
}

[[maybe_unused]] Word work(const char* name, Word a, Word b, Word c) {
  constexpr int kMajor = 75;
  constexpr int kMinor = 76;
  if (same(name, "cuDriverGetVersion")) return put(a, 12080);
  if (same(name, "cuDeviceGet")) return put(a, static_cast<int>(b));
  if (same(name, "cuCtxGetDevice")) return put(a, 0);
  if (same(name, "cuDeviceGetCount")) return put(a, 1);
  if (same(name, "cuDeviceGetAttribute")) return put(a, b == kMajor ? 9 : b == kMinor ? 0 : 1);
  if (same(name, "cuDeviceTotalMem_v2")) return put(a, 1L << 34);
  if (same(name, "cuDeviceGetName") || same(name, "cuDeviceGetPCIBusId")) {
    if (a != 0 && b > 1) reinterpret_cast<char*>(a)[0] = 'P', reinterpret_cast<char*>(a)[1] = 0;
    return 0;
  }
  if (begins(name, "cuDeviceGetUuid")) return 0;
  if (begins(name, "cuGetProcAddress") || same(name, "cuGetExportTable")) return 500;
  if (begins(name, "cuModuleLoad") || begins(name, "cuLibraryLoad") || begins(name, "cuModuleGetFunction") ||
      begins(name, "cuLibraryGetKernel") || begins(name, "cuCtxCreate"))
    return put(a, handle());
  if (same(name, "cuDevicePrimaryCtxRetain")) return put(a, Word{0x6000'0000});
  static_cast<void>(c);
  return 0;
}

void say(const char* name) {
  const Callback callback = g_callback;
  if (callback == nullptr) return;
  char line[128] = "[12:00:00.000][1][CUDA][E][";
  unsigned long size = 27;
  while (*name != 0 && size + 12 < sizeof line) line[size++] = *name++;
  for (const char* rest = "] refused"; *rest != 0;) line[size++] = *rest++;
  callback(nullptr, 0, line, size);
}

Word answer(const char* name, Word a, Word b, Word c, bool hooked) {
  PLAIN_SETTINGS.entered = PLAIN_SETTINGS.entered + 1;
  const char* const stuck = PLAIN_SETTINGS.stuck_in;
  if (stuck != nullptr && same(stuck, name)) {
    PLAIN_SETTINGS.stuck_in = nullptr;
    for (;;) syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 8);
  }
  if (const auto call = PLAIN_SETTINGS.calls; call != nullptr) {
    call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  }
  if (hooked && PLAIN_SETTINGS.answer != 0) {
    say(name);
    return PLAIN_SETTINGS.answer;
  }
#if defined(PLAIN_DRIVER)
  return work(name, a, b, c);
#else
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(c);
  return 0;
#endif
}

}  // namespace

#define PLAIN_FUNCTION(name, hooked)                                      \
  PLAIN_EXPORT Word name(Word a, Word b, Word c, Word d, Word e, Word f); \
  Word name(Word a, Word b, Word c, Word, Word, Word) { return answer(#name, a, b, c, hooked); }

#if defined(PLAIN_DRIVER)
#define PLAIN_ROW_driver(name) PLAIN_FUNCTION(name, true)
#define PLAIN_ROW_runtime(name)
PLAIN_EXPORT int cuLogsRegisterCallback(Callback callback, void*, void** handle);
int cuLogsRegisterCallback(Callback callback, void*, void** handle) {
  g_callback = callback;
  return static_cast<int>(put(reinterpret_cast<Word>(handle), 1L));
}
PLAIN_EXPORT int cuLogsUnregisterCallback(void*);
int cuLogsUnregisterCallback(void*) {
  g_callback = nullptr;
  return 0;
}
PLAIN_FUNCTION(cuCtxGetDevice, false)
PLAIN_FUNCTION(cuCtxSetCurrent, false)
PLAIN_FUNCTION(cuCtxGetCurrent, false)
PLAIN_FUNCTION(cuDeviceGetCount, false)
PLAIN_FUNCTION(cuDeviceGetName, false)
PLAIN_FUNCTION(cuDeviceGetAttribute, false)
PLAIN_FUNCTION(cuDeviceGetUuid, false)
PLAIN_FUNCTION(cuDeviceGetUuid_v2, false)
PLAIN_FUNCTION(cuDeviceGetPCIBusId, false)
PLAIN_FUNCTION(cuDeviceTotalMem_v2, false)
#else
#define PLAIN_ROW_driver(name)
#define PLAIN_ROW_runtime(name) PLAIN_FUNCTION(name, true)
PLAIN_FUNCTION(cudaRuntimeGetVersion, false)
#endif
#define KSHIM_HOOK(layer, name, ...) PLAIN_ROW_##layer(name)
#include "hooks.def"
