// SPDX-License-Identifier: Apache-2.0
// Functions between a wrapper and the driver that count launches: one for each hook with a kernel among its
// arguments, expanded from hooks.def.
#include <type_traits>

#include "core/observer.h"
#include "cuda/call_args.h"
#include "cuda/real_functions.h"
#include "exports/symbol_lookup.h"
#include "track/coverage.h"

namespace kshim::shim {
namespace {

std::atomic<AnyFunction> g_real[2][kHookCount];  // handed out by address; exported

template <class... Arguments>
constexpr bool kNamesKernel = (kIsReportable<Arguments> || ...);

/// Nodes of any kind: a kernel's among them.
template <Hook hook>
constexpr bool kMayHoldKernel = hook == Hook::cuGraphAddNode || hook == Hook::cuGraphAddNode_v2;

template <Hook hook, bool exported, class Function>
struct Counting;
template <Hook hook, bool exported, class... Arguments>
struct Counting<hook, exported, abi::Result(Arguments...)> {
  static abi::Result call(Arguments... arguments) noexcept {
    // Pairs with the release store of this function's address, which the wrapper loads relaxed.
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto real = reinterpret_cast<abi::Result (*)(Arguments...)>(
        g_real[exported ? 1 : 0][index_of(hook)].load(std::memory_order_relaxed));
    const abi::Result code = real(arguments...);
    if (code == 0) {
      CallArgs facts;
      (extract_arg(facts, arguments), ...);
      if constexpr (kNamesKernel<Arguments...>)
        on_launch(facts.handle);
      else
        count_unknown_launch();
    }
    return code;
  }
  static AnyFunction address() noexcept {
    return kNamesKernel<Arguments...> || kMayHoldKernel<hook> ? reinterpret_cast<AnyFunction>(&call)
                                                              : nullptr;
  }
};

using namespace abi;  // hooks.def's types

template <bool exported>
AnyFunction counting_call(Hook hook) noexcept {
  switch (hook) {
#define KSHIM_LAYER_driver(name, ret, params, stage)                \
  case Hook::name:                                                  \
    if constexpr (Stage::stage == Stage::launch)                    \
      return Counting<Hook::name, exported, ret params>::address(); \
    else                                                            \
      return nullptr;
#define KSHIM_LAYER_runtime(name, ret, params, stage)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_LAYER_##layer(name, ret, params, stage)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
    default:
      return nullptr;
  }
}

AnyFunction wrap(Hook hook, bool exported, AnyFunction real) noexcept {
  const AnyFunction call = exported ? counting_call<true>(hook) : counting_call<false>(hook);
  if (call == nullptr) return real;
  g_real[exported ? 1 : 0][index_of(hook)].store(real, std::memory_order_release);
  return call;
}

}  // namespace

void count_launches() noexcept { wrap_launches(wrap); }

}  // namespace kshim::shim
