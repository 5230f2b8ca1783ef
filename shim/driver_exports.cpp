// SPDX-License-Identifier: Apache-2.0
// The wrappers of libcuda's functions, expanded from hooks.def. Exported under the node of exports.map;
// inside the shim each has a name of its own, so that no reference can be taken over by somebody else's
// definition.
#include "call.h"
#include "real.h"
#include "routed.h"

using namespace kshim::shim;
using namespace kshim::shim::abi;

#define KSHIM_FACTS(name, code, ...) \
  facts_of(Hook::name, code, __builtin_return_address(0) __VA_OPT__(, ) __VA_ARGS__)
#define KSHIM_STRIP(...) __VA_ARGS__
#define KSHIM_MORE(...) __VA_OPT__(, ) __VA_ARGS__

#define KSHIM_DECLARE(name, ret, params, args)                                                    \
  extern "C" [[gnu::visibility("default")]] ret kshim_driver_##name params;                       \
  asm(".symver kshim_driver_" #name ", " #name "@@KSHIM_1");                                      \
  [[gnu::noinline, gnu::cold]] static ret kshim_first_##name params {                             \
    return resolve_driver(Hook::name) == nullptr ? absent(Hook::name) : kshim_driver_##name args; \
  }

// The first call of all goes round by a function of the same shape, so that the path of all others need not
// keep the arguments anywhere.
#define KSHIM_REAL(name, params, args)                                                         \
  const auto real = reinterpret_cast<decltype(&kshim_driver_##name)>(driver_real(Hook::name)); \
  if (real == nullptr) [[unlikely]]                                                            \
    return kshim_first_##name args;

// Call, test, return.
#define KSHIM_PLAIN(name, ret, params, args)                                                            \
  KSHIM_DECLARE(name, ret, params, args)                                                                \
  ret kshim_driver_##name params {                                                                      \
    KSHIM_REAL(name, params, args)                                                                      \
    const Result code = real args;                                                                      \
    if (code != 0) [[unlikely]]                                                                         \
      return Picked<note_failure>::from(Hook::name, code, __builtin_return_address(0) KSHIM_MORE args); \
    return code;                                                                                        \
  }

#define KSHIM_LOAD(name, ret, params, args)                                                           \
  KSHIM_DECLARE(name, ret, params, args)                                                              \
  ret kshim_driver_##name params {                                                                    \
    KSHIM_REAL(name, params, args)                                                                    \
    const std::uint64_t begin = load_begins();                                                        \
    const Result code = real args;                                                                    \
    note_load(KSHIM_FACTS(name, code, KSHIM_STRIP args), begin, code == 0 ? handle_written args : 0); \
    return code;                                                                                      \
  }

#define KSHIM_LOOKUP(name, ret, params, args)                                      \
  KSHIM_DECLARE(name, ret, params, args)                                           \
  ret kshim_driver_##name params {                                                 \
    KSHIM_REAL(name, params, args)                                                 \
    const Result code = real args;                                                 \
    if (code == 0)                                                                 \
      note_lookup(KSHIM_FACTS(name, code, KSHIM_STRIP args), handle_written args); \
    else                                                                           \
      note_failure(KSHIM_FACTS(name, code, KSHIM_STRIP args));                     \
    return code;                                                                   \
  }

#define KSHIM_INIT(name, ret, params, args)               \
  KSHIM_DECLARE(name, ret, params, args)                  \
  ret kshim_driver_##name params {                        \
    KSHIM_REAL(name, params, args)                        \
    init_begins();                                        \
    const Result code = real args;                        \
    note_init(KSHIM_FACTS(name, code, KSHIM_STRIP args)); \
    return code;                                          \
  }

// cuGetProcAddress and its version 2: route.cpp.
#define KSHIM_ROUTE(name, ret, params, args)                                \
  extern "C" [[gnu::visibility("default")]] ret kshim_driver_##name params; \
  asm(".symver kshim_driver_" #name ", " #name "@@KSHIM_1");                \
  ret kshim_driver_##name params { return routed::name(KSHIM_STRIP args, __builtin_return_address(0)); }

#define KSHIM_WRAP_init KSHIM_INIT
#define KSHIM_WRAP_load KSHIM_LOAD
#define KSHIM_WRAP_lookup KSHIM_LOOKUP
#define KSHIM_WRAP_query KSHIM_PLAIN
#define KSHIM_WRAP_launch KSHIM_PLAIN
#define KSHIM_WRAP_other KSHIM_PLAIN
#define KSHIM_WRAP_unload KSHIM_PLAIN
#define KSHIM_WRAP_link KSHIM_PLAIN
#define KSHIM_WRAP_route KSHIM_ROUTE

#define KSHIM_LAYER_driver(name, ret, params, args, stage) KSHIM_WRAP_##stage(name, ret, params, args)
#define KSHIM_LAYER_runtime(name, ret, params, args, stage)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_LAYER_##layer(name, ret, params, args, stage)
#include "hooks.def"
#undef KSHIM_HOOK

namespace kshim::shim {

AnyFunction driver_wrapper(Hook hook) noexcept {
  switch (hook) {
#define KSHIM_ADDRESS_driver(name) \
  case Hook::name:                 \
    return reinterpret_cast<AnyFunction>(&kshim_driver_##name);
#define KSHIM_ADDRESS_runtime(name)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_ADDRESS_##layer(name)
#include "hooks.def"
#undef KSHIM_HOOK
    default:
      return nullptr;
  }
}

}  // namespace kshim::shim
