// SPDX-License-Identifier: Apache-2.0
// The wrappers of libcuda's functions, expanded from hooks.def. Exported under the node of exports.map;
// inside the shim each has another name, so that no other definition can preempt a reference.
#include "core/observer.h"
#include "cuda/call_args.h"
#include "cuda/real_functions.h"
#include "exports/symbol_lookup.h"
#include "report/run_socket.h"

using namespace kshim::shim;
using namespace kshim::shim::abi;

constexpr Result kNotReady = 600;

#define KSHIM_FACTS(name, code, ...) \
  args_of(Hook::name, code, __builtin_return_address(0) __VA_OPT__(, ) __VA_ARGS__)
#define KSHIM_STRIP(...) __VA_ARGS__
#define KSHIM_MORE(...) __VA_OPT__(, ) __VA_ARGS__

// Two of each. What programs are linked to ("export") goes on to the next definition in link order, which may
// be another tool's; what the driver hands out by address ("routed") goes on to the driver itself. Where both
// are one function, look-ups get the export: a program that overwrites the first bytes of what it has looked
// up (UCX, Frida) changes it for callers that are linked to it, too. kshim_own_NAME is the export under a
// name that no other object can define.
#define KSHIM_DECLARE_export(name, ret, params)                             \
  extern "C" [[gnu::visibility("default")]] ret kshim_export_##name params; \
  asm(".symver kshim_export_" #name ", " #name "@@KSHIM_1");
#define KSHIM_DECLARE_routed(name, ret, params) static ret kshim_routed_##name params;

// The wrapper, and a cold function of the same signature, so that the hot path spills no arguments: it finds
// the function where the table has none, and does the same with it. A plug-in's own is called unwatched.
#define KSHIM_WRAPPER(path, name, ret, params, args, ...)                                            \
  KSHIM_DECLARE_##path(name, ret, params)                                                            \
      [[gnu::noinline, gnu::cold]] static ret kshim_first_##path##_##name params {                   \
    const Resolved found = resolve_##path(Hook::name, __builtin_return_address(0));                  \
    if (found.function == nullptr) return absent(Hook::name);                                        \
    const auto real = reinterpret_cast<decltype(&kshim_##path##_##name)>(found.function);            \
    if (found.is_plugins) return real args;                                                          \
    __VA_ARGS__                                                                                      \
  }                                                                                                  \
  ret kshim_##path##_##name params {                                                                 \
    const auto real = reinterpret_cast<decltype(&kshim_##path##_##name)>(driver_##path(Hook::name)); \
    if (real == nullptr) [[unlikely]]                                                                \
      return kshim_first_##path##_##name args;                                                       \
    __VA_ARGS__                                                                                      \
  }

// Call, test, return.
#define KSHIM_CALL(path, name, ret, params, args, failed)                           \
  KSHIM_WRAPPER(path, name, ret, params, args, const Result code = real args;       \
                if (failed) [[unlikely]] return SelectArgs<on_call_failed>::from(   \
                    Hook::name, code, __builtin_return_address(0) KSHIM_MORE args); \
                return code;)
#define KSHIM_PLAIN(path, name, ret, params, args) KSHIM_CALL(path, name, ret, params, args, code != 0)
#define KSHIM_POLL(path, name, ret, params, args) \
  KSHIM_CALL(path, name, ret, params, args, code != 0 && code != kNotReady)

#define KSHIM_LOAD(path, name, ret, params, args)                                                        \
  KSHIM_WRAPPER(path, name, ret, params, args, const std::uint64_t begin = load_begins();                \
                const Result code = real args; on_load(KSHIM_FACTS(name, code, KSHIM_STRIP args), begin, \
                                                       code == 0 ? handle_written args : 0);             \
                return code;)

#define KSHIM_UNLOAD(path, name, ret, params, args)                            \
  KSHIM_WRAPPER(path, name, ret, params, args, unload_begins(address_of args); \
                const Result code = real args;                                 \
                if (code != 0) on_call_failed(KSHIM_FACTS(name, code, KSHIM_STRIP args)); return code;)

#define KSHIM_LOOKUP(path, name, ret, params, args)                                                       \
  KSHIM_WRAPPER(path, name, ret, params, args, const Result code = real args;                             \
                if (code == 0) on_lookup(KSHIM_FACTS(name, code, KSHIM_STRIP args), handle_written args); \
                else on_call_failed(KSHIM_FACTS(name, code, KSHIM_STRIP args)); return code;)

#define KSHIM_INIT(path, name, ret, params, args)                                                         \
  KSHIM_WRAPPER(path, name, ret, params, args, const bool begun = on_init_begins();                       \
                const Result code = real args; on_init(KSHIM_FACTS(name, code, KSHIM_STRIP args), begun); \
                return code;)

// cuGetProcAddress and its version 2: symbol_lookup.cpp.
#define KSHIM_ROUTE(path, name, ret, params, args)                                                          \
  KSHIM_WRAPPER(path, name, ret, params, args, const Result code = real args; if (code == 0)                \
                    wrap_get_proc_address_result(symbol, pfn, version, flags, __builtin_return_address(0)); \
                return code;)

// cuGetExportTable: driver_table.cpp. Callers probe for tables, so one that the driver lacks is no failure.
#define KSHIM_TABLE(path, name, ret, params, args)                                                        \
  KSHIM_WRAPPER(path, name, ret, params, args, const Result code = real args;                             \
                if (code == 0) on_export_table(table, id, __builtin_return_address(0), table_wrappers()); \
                return code;)

#define KSHIM_VERSION(path, name, ret, params, args)                                                 \
  KSHIM_WRAPPER(path, name, ret, params, args, const Result code = real args;                        \
                if (code == 0 && !in_driver(__builtin_return_address(0))) note_driver_version(*out); \
                return code;)

#define KSHIM_WRAP_init KSHIM_INIT
#define KSHIM_WRAP_version KSHIM_VERSION
#define KSHIM_WRAP_load KSHIM_LOAD
#define KSHIM_WRAP_lookup KSHIM_LOOKUP
#define KSHIM_WRAP_query KSHIM_PLAIN
#define KSHIM_WRAP_launch KSHIM_PLAIN
#define KSHIM_WRAP_other KSHIM_PLAIN
#define KSHIM_WRAP_poll KSHIM_POLL
#define KSHIM_WRAP_unload KSHIM_UNLOAD
#define KSHIM_WRAP_link KSHIM_PLAIN
#define KSHIM_WRAP_route KSHIM_ROUTE
#define KSHIM_WRAP_table KSHIM_TABLE

#define KSHIM_LAYER_driver(name, ret, params, args, stage)           \
  KSHIM_WRAP_##stage(export, name, ret, params, args)                \
      KSHIM_WRAP_##stage(routed, name, ret, params, args) extern "C" \
      [[gnu::visibility("hidden"), gnu::alias("kshim_export_" #name)]] ret kshim_own_##name params;
#define KSHIM_LAYER_runtime(name, ret, params, args, stage)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_LAYER_##layer(name, ret, params, args, stage)
#include "cuda/hooks.def"
#undef KSHIM_HOOK

namespace kshim::shim {

AnyFunction routed_wrapper(Hook hook) noexcept {
  const bool one = is_driver_next(hook);
  switch (hook) {
#define KSHIM_ADDRESS_driver(name)                                \
  case Hook::name:                                                \
    return one ? reinterpret_cast<AnyFunction>(&kshim_own_##name) \
               : reinterpret_cast<AnyFunction>(&kshim_routed_##name);
#define KSHIM_ADDRESS_runtime(name)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_ADDRESS_##layer(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
    default:
      return nullptr;
  }
}

}  // namespace kshim::shim
