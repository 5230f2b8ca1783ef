// SPDX-License-Identifier: Apache-2.0
// The functions that stand in the slots of the driver's table (cuda/driver_table.h).
#include "core/observer.h"
#include "cuda/call_args.h"
#include "cuda/driver_table.h"
#include "exports/symbol_lookup.h"

namespace kshim::shim {
namespace {

using Word = std::uintptr_t;

// All words that the calling convention passes in registers are passed on, so that the driver receives
// parameters that are not known here. The known functions have at most five.
#if defined(__aarch64__)
#define KSHIM_MORE_WORDS Word c, Word d, Word e, Word f, Word g, Word h
#define KSHIM_PASS_WORDS c, d, e, f, g, h
#else
#define KSHIM_MORE_WORDS Word c, Word d, Word e, Word f
#define KSHIM_PASS_WORDS c, d, e, f
#endif
template <Hook hook, TableRow row, class First, class Second>
Word slot_wrapper(First first, Second second, KSHIM_MORE_WORDS) {
  // Pairs with the release store of this function's address, which the runtime has read from the table.
  std::atomic_thread_fence(std::memory_order_acquire);
  const auto real = reinterpret_cast<decltype(&slot_wrapper<hook, row, First, Second>)>(
      g_table_real[row].load(std::memory_order_relaxed));
  const std::uint64_t begin = load_begins();
  const Word answer = real(first, second, KSHIM_PASS_WORDS);
  const auto code = static_cast<abi::Result>(answer);
  on_load(args_of(hook, code, __builtin_return_address(0), first, second), begin,
          code == 0 ? handle_written(first, second) : 0);
  return answer;
}

const AnyFunction kWrappers[] = {
#define KSHIM_SLOT(name, reported, slot, first, second) \
  reinterpret_cast<AnyFunction>(&slot_wrapper<Hook::name, row_##name, first, second>),
#include "cuda/slots.def"
#undef KSHIM_SLOT
};

}  // namespace

const AnyFunction* table_wrappers() noexcept { return kWrappers; }

}  // namespace kshim::shim
