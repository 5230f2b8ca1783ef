// SPDX-License-Identifier: Apache-2.0
#include "failure/cudart_frame.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "guest/safe_memory.h"
#include "process/stack/walk.h"

// The linker's marks of the section that all wrappers of the runtime are in (runtime_exports.cpp).
extern "C" [[gnu::visibility("hidden")]] const char __start_kshim_runtime[];
extern "C" [[gnu::visibility("hidden")]] const char __stop_kshim_runtime[];

namespace kshim::shim {

namespace {

/// A frame of a runtime's wrapper: where it goes on, and its end.
struct WrapperFrame {
  std::uintptr_t address = 0;  ///< 0 = none
  std::uintptr_t stack = 0;
};

WrapperFrame find_wrapper() noexcept {
  // A runtime call reaches the driver within a few frames; the program's own frames are not examined.
  constexpr int kMaxFrames = 48;
  const auto low = reinterpret_cast<std::uintptr_t>(__start_kshim_runtime);
  const auto high = reinterpret_cast<std::uintptr_t>(__stop_kshim_runtime);
  WrapperFrame found;
  int frames = 0;
  walk_stack([&](const Frame& frame) {
    if (frame.address >= low && frame.address < high) found = {frame.address, frame.stack};
    return found.address == 0 && ++frames < kMaxFrames;
  });
  return found;
}

/// Where a walk has found the return address of a runtime's wrapper. A call that fails again and again has
/// the same frames between that place and its own.
struct Place {
  const void* caller = nullptr;
  std::uintptr_t distance = 0;  ///< from the frame; 0 = unknown
  std::uintptr_t address = 0;
};
Place g_places[16];

Place& place_of(const void* caller) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(caller);
  return g_places[value * 0x9e3779b97f4a7c15ULL >> 60U];
}

bool is_still_there(const Place& place, const void* caller, std::uintptr_t frame) noexcept {
  std::uintptr_t address = 0;
  return place.caller == caller && place.distance != 0 &&
         read_memory(frame + place.distance, &address, sizeof address) && address == place.address;
}

/// How far the return address lies from `frame`; 0 = too far.
std::uintptr_t distance_of(const WrapperFrame& found, std::uintptr_t frame) noexcept {
  std::uintptr_t words[512];
  const std::size_t count = (found.stack - frame) / sizeof words[0];
  if (found.stack < frame || count > std::size(words) || !read_memory(frame, words, count * sizeof words[0]))
    return 0;
  for (std::size_t i = count; i != 0; --i)
    if (words[i - 1] == found.address) return (i - 1) * sizeof words[0];
  return 0;
}

}  // namespace

bool called_from_cudart(const void* caller, std::uintptr_t frame) noexcept {
  frame -= frame % sizeof frame;
  Place& place = place_of(caller);
  if (is_still_there(place, caller, frame)) return true;
  const WrapperFrame found = find_wrapper();
  if (found.address == 0) return false;
  place = {caller, distance_of(found, frame), found.address};
  return true;
}

}  // namespace kshim::shim
