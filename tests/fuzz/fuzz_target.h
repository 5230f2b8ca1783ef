// SPDX-License-Identifier: Apache-2.0
// What every fuzz target shares: a check that stays in optimized builds, and the way a view is proved to be
// readable.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kshim/base/bytes.h"

/// libFuzzer's entry point; replay.cpp calls it too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kshim::fuzz {

/// An invariant of the readers. Ends the process: the fuzzer keeps the input that did it.
inline void require(bool holds, const char* invariant) {
  if (holds) return;
  std::fprintf(stderr, "broken invariant: %s\n", invariant);
  std::abort();
}

/// `part` lies inside `whole`, and every byte of it can be read (AddressSanitizer sees a stray one).
inline void require_inside(Bytes part, Bytes whole) {
  if (part.empty()) return;
  require(part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size(),
          "a view leaves its file");
  [[maybe_unused]] volatile std::byte sink = part.front();
  sink = part.back();
}
inline void require_inside(std::string_view part, Bytes whole) { require_inside(bytes_of(part), whole); }

inline Bytes input_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace kshim::fuzz
