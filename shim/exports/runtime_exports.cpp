// SPDX-License-Identifier: Apache-2.0
// The wrappers of the shared runtime's functions, expanded from hooks.def: one a runtime version, exported as
// name@libcudart.so.N, so that each knows its real target where several runtimes live in one process. None is
// the default version, so that unversioned references do not bind to the shim: they belong to libraries that
// export a runtime of their own (TensorFlow's libtensorflow_framework.so.2, which opens NVIDIA's when it is
// first called).
#include "core/observer.h"
#include "cuda/call_args.h"
#include "cuda/real_functions.h"
#include "cuda/rebind.h"
#include "exports/symbol_lookup.h"

using namespace kshim::shim;
using namespace kshim::shim::abi;

// These wrappers lie in a section of their own, by which cudart_frame.h finds out whether a driver call
// happens inside a hooked runtime call. It holds only wrappers that call on_runtime_returned(): an error that
// is held for any other would never be recorded.
#define KSHIM_RUNTIME_CODE gnu::section("kshim_runtime")

#define KSHIM_STRIP(...) __VA_ARGS__
#define KSHIM_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define KSHIM_FACTS(name, code, ...) \
  args_of(Hook::name, code, __builtin_return_address(0) __VA_OPT__(, ) __VA_ARGS__)

#define KSHIM_DECLARE(v, version, name, ret, params)                                           \
  extern "C" [[gnu::visibility("default"), KSHIM_RUNTIME_CODE]] ret kshim_##v##_##name params; \
  asm(".symver kshim_" #v "_" #name ", " #name version);
#define KSHIM_DECLARE_PLAIN(v, version, name, ret, params)                 \
  extern "C" [[gnu::visibility("default")]] ret kshim_##v##_##name params; \
  asm(".symver kshim_" #v "_" #name ", " #name version);

// The wrapper, and a cold function of the same signature, so that the hot path spills no arguments: it finds
// the function where the table has none, and does the same with it.
#define KSHIM_WRAPPER(v, name, ret, params, args, where, ...)                                                \
  [[ gnu::noinline, gnu::cold where ]] static ret kshim_first_##v##_##name params {                          \
    const auto real =                                                                                        \
        reinterpret_cast<decltype(&kshim_##v##_##name)>(resolve_runtime(Runtime::v, Hook::name));            \
    if (real == nullptr) return absent(Runtime::v, Hook::name);                                              \
    __VA_ARGS__                                                                                              \
  }                                                                                                          \
  ret kshim_##v##_##name params {                                                                            \
    const auto real = reinterpret_cast<decltype(&kshim_##v##_##name)>(runtime_real(Runtime::v, Hook::name)); \
    if (real == nullptr) [[unlikely]]                                                                        \
      return kshim_first_##v##_##name args;                                                                  \
    __VA_ARGS__                                                                                              \
  }
#define KSHIM_AND_RUNTIME_CODE , KSHIM_RUNTIME_CODE
#define KSHIM_NOWHERE

#define KSHIM_REAL(v, name)                                                                           \
  auto* real = reinterpret_cast<decltype(&kshim_##v##_##name)>(runtime_real(Runtime::v, Hook::name)); \
  if (real == nullptr) [[unlikely]]                                                                   \
    real = reinterpret_cast<decltype(&kshim_##v##_##name)>(resolve_runtime(Runtime::v, Hook::name));

// Call, test, return. A driver error that was raised inside is recorded here, together with the runtime's.
#define KSHIM_CALL(v, version, name, ret, params, args)                                             \
  KSHIM_DECLARE(v, version, name, ret, params)                                                      \
  KSHIM_WRAPPER(v, name, ret, params, args, KSHIM_AND_RUNTIME_CODE, const Result code = real args;  \
                if ((static_cast<unsigned>(code) | g_pending.load(std::memory_order_relaxed)) != 0) \
                    [[unlikely]] return SelectArgs<on_runtime_returned>::from(                      \
                        Hook::name, code, __builtin_return_address(0) KSHIM_MORE args);             \
                return code;)

#define KSHIM_LOOKUP(v, version, name, ret, params, args)                                           \
  KSHIM_DECLARE(v, version, name, ret, params)                                                      \
  KSHIM_WRAPPER(v, name, ret, params, args, KSHIM_AND_RUNTIME_CODE, const Result code = real args;  \
                const CallArgs facts = KSHIM_FACTS(name, code, KSHIM_STRIP args);                   \
                if (code == 0) on_lookup(facts, handle_written args);                               \
                if ((static_cast<unsigned>(code) | g_pending.load(std::memory_order_relaxed)) != 0) \
                    [[unlikely]] on_runtime_returned(facts);                                        \
                return code;)

#define KSHIM_READ(v, version, name, ret, params, args)                                                   \
  KSHIM_DECLARE_PLAIN(v, version, name, ret, params)                                                      \
  KSHIM_WRAPPER(v, name, ret, params, args, KSHIM_NOWHERE, const Result code = real args;                 \
                if (code != 0) [[unlikely]] on_error_read(Hook::name, code, __builtin_return_address(0)); \
                return code;)

// A library registers its device code first of all, and so says which runtime is its own.
#define KSHIM_REGISTRATION(v, version, name, ret, params, args)                                       \
  KSHIM_DECLARE_PLAIN(v, version, name, ret, params)                                                  \
  ret kshim_##v##_##name params {                                                                     \
    if (Hook::name == Hook::__cudaRegisterFatBinary) {                                                \
      recheck_runtime(Runtime::v);                                                                    \
      if (const auto own = own_runtime_function(Runtime::v, Hook::name, __builtin_return_address(0)); \
          own != nullptr)                                                                             \
        return reinterpret_cast<decltype(&kshim_##v##_##name)>(own) args;                             \
    }                                                                                                 \
    KSHIM_REAL(v, name)                                                                               \
    return register_with(HookTag<Hook::name>{}, real, KSHIM_STRIP args);                              \
  }

namespace {

template <Hook kHook>
struct HookTag {};

FatbinHandle register_with(HookTag<Hook::__cudaRegisterFatBinary>, FatbinHandle (*real)(void*),
                           void* wrapper) {
  if (real == nullptr) return nullptr;
  const FatbinHandle handle = real(wrapper);
  on_fatbin_registered(handle, address_of(wrapper));
  return handle;
}
void register_with(HookTag<Hook::__cudaRegisterFatBinaryEnd>, void (*real)(FatbinHandle),
                   FatbinHandle fatbin) {
  if (real != nullptr) real(fatbin);
  on_fatbin_complete();
}
void register_with(HookTag<Hook::__cudaUnregisterFatBinary>, void (*real)(FatbinHandle),
                   FatbinHandle fatbin) {
  on_fatbin_unregistered(fatbin);
  if (real != nullptr) real(fatbin);
}
template <class Real, class... Rest>
void register_with(HookTag<Hook::__cudaRegisterFunction>, Real real, FatbinHandle fatbin, const char* host,
                   char* device, const char* name, Rest... rest) {
  if (real != nullptr) real(fatbin, host, device, name, rest...);
  on_kernel_registered(fatbin, address_of(host), name);
}
template <Hook kHook, class Real, class... Rest>
void register_with(HookTag<kHook>, Real real, Rest... rest) {
  if (real != nullptr) real(rest...);
}

}  // namespace

#define KSHIM_WRAP_init KSHIM_CALL
#define KSHIM_WRAP_load KSHIM_CALL
#define KSHIM_WRAP_lookup KSHIM_LOOKUP
#define KSHIM_WRAP_query KSHIM_CALL
#define KSHIM_WRAP_launch KSHIM_CALL
#define KSHIM_WRAP_other KSHIM_CALL
#define KSHIM_WRAP_read KSHIM_READ
#define KSHIM_WRAP_registration KSHIM_REGISTRATION

#define KSHIM_LAYER_driver(name, ret, params, args, stage)
#define KSHIM_LAYER_runtime(name, ret, params, args, stage)                \
  KSHIM_WRAP_##stage(v11, "@libcudart.so.11.0", name, ret, params, args)   \
      KSHIM_WRAP_##stage(v12, "@libcudart.so.12", name, ret, params, args) \
          KSHIM_WRAP_##stage(v13, "@libcudart.so.13", name, ret, params, args)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_LAYER_##layer(name, ret, params, args, stage)
#include "cuda/hooks.def"
#undef KSHIM_HOOK

namespace kshim::shim {

AnyFunction runtime_wrapper(Runtime runtime, Hook hook) noexcept {
  switch (hook) {
#define KSHIM_ADDRESS_driver(name)
#define KSHIM_ADDRESS_runtime(name)                                                    \
  case Hook::name:                                                                     \
    return reinterpret_cast<AnyFunction>(runtime == Runtime::v11   ? &kshim_v11_##name \
                                         : runtime == Runtime::v12 ? &kshim_v12_##name \
                                                                   : &kshim_v13_##name);
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_ADDRESS_##layer(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
    default:
      return nullptr;
  }
}

}  // namespace kshim::shim
