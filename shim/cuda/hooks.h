// SPDX-License-Identifier: Apache-2.0
// What hooks.def expands to besides the exports: numbers, names, stages.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "process/loaded_elf.h"

namespace kshim::shim {

enum class Layer : std::uint8_t { driver, runtime, table, nvrtc, nvjitlink };
enum class Stage : std::uint8_t {
  init,
  load,
  lookup,
  query,
  launch,
  other,
  unload,
  link,
  route,
  table,
  registration,
  compile,
  read,
  version,
  poll
};

enum class Hook : std::uint16_t {
#define KSHIM_HOOK(layer, name, ret, params, args, stage) name,
#include "cuda/hooks.def"
#undef KSHIM_HOOK
#define KSHIM_SLOT(name, reported, slot, first, second) name,
#include "cuda/slots.def"
#undef KSHIM_SLOT
#define KSHIM_COMPILER(layer, name, nodes) name,
#include "cuda/compilers.def"
#undef KSHIM_COMPILER
};

struct HookRow {
  std::string_view name;
  Layer layer;
  Stage stage;
  std::uint32_t gnu_hash;  ///< of the name, as .gnu.hash wants it
};

inline constexpr HookRow kHooks[] = {
#define KSHIM_HOOK(layer, name, ret, params, args, stage) \
  {#name, Layer::layer, Stage::stage, gnu_hash(#name)},
#include "cuda/hooks.def"
#undef KSHIM_HOOK
#define KSHIM_SLOT(name, reported, slot, first, second) {reported, Layer::table, Stage::load, 0},
#include "cuda/slots.def"
#undef KSHIM_SLOT
#define KSHIM_COMPILER(layer, name, nodes) {#name, Layer::layer, Stage::compile, gnu_hash(#name)},
#include "cuda/compilers.def"
#undef KSHIM_COMPILER
};
inline constexpr std::size_t kHookCount = sizeof kHooks / sizeof kHooks[0];

constexpr std::size_t index_of(Hook hook) noexcept { return static_cast<std::size_t>(hook); }
constexpr const HookRow& row_of(Hook hook) noexcept { return kHooks[index_of(hook)]; }

/// `stage` as the report spells it. Stages that the report does not have map to other ones.
constexpr std::string_view report_name(Stage stage) noexcept {
  switch (stage) {
    case Stage::init:
      return "init";
    case Stage::load:
    case Stage::link:
      return "load";
    case Stage::lookup:
      return "lookup";
    case Stage::query:
      return "query";
    case Stage::launch:
      return "launch";
    default:
      return "other";
  }
}

/// Rows by the hash of their name: open addressing, row + 1. A runtime looks up hundreds of names while it
/// starts, and most of them are not hooked.
inline constexpr std::size_t kNameSlots = 1024;
static_assert(kHookCount < kNameSlots / 2);
inline constexpr auto kNameIndex = [] {
  std::array<std::uint16_t, kNameSlots> index{};
  for (std::size_t row = 0; row < kHookCount; ++row) {
    if (kHooks[row].layer == Layer::table) continue;  // these have no names
    std::size_t at = kHooks[row].gnu_hash % kNameSlots;
    while (index[at] != 0) at = (at + 1) % kNameSlots;
    index[at] = static_cast<std::uint16_t>(row + 1);
  }
  return index;
}();

/// kHookCount when no row has that name. Exact: a prefix would catch cudnnCreate, cublasCreate and their
/// like.
constexpr std::size_t find_hook(std::string_view name) noexcept {
  const std::uint32_t hash = gnu_hash(name);
  for (std::size_t at = hash % kNameSlots; kNameIndex[at] != 0; at = (at + 1) % kNameSlots) {
    const std::size_t row = kNameIndex[at] - 1U;
    if (kHooks[row].gnu_hash == hash && kHooks[row].name == name) return row;
  }
  return kHookCount;
}

/// The runtimes whose symbols are versioned (the node's name is the soname).
enum class Runtime : std::uint8_t { v11, v12, v13 };
inline constexpr std::string_view kRuntimeSonames[] = {"libcudart.so.11.0", "libcudart.so.12",
                                                       "libcudart.so.13"};
inline constexpr std::size_t kRuntimeCount = 3;

}  // namespace kshim::shim
