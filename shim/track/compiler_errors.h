// SPDX-License-Identifier: Apache-2.0
// Examines a failed call of a compiler library: which architecture the program asked for, and which ones the
// library knows. The library's own functions tell its version and its list.
#pragma once
#include <cstdint>
#include <string_view>

#include "cuda/hooks.h"
#include "guest/text_buffer.h"
#include "track/device_code.h"

namespace kshim::shim {

struct CompilerCall {
  Hook hook{};
  int code = 0;                  ///< nvrtcResult or nvJitLinkResult
  const void* caller = nullptr;  ///< return address of the wrapper
  std::uintptr_t real = 0;       ///< the library's function
  unsigned count = 0;            ///< of options, which are the program's: read with read_memory
  const char* const* options = nullptr;
};

struct Refusal {
  Hook hook{};
  int code = 0;
  std::string_view code_name;
  const void* caller = nullptr;
  std::uint32_t library = 0;  ///< identity of its file
  bool definitive = false;    ///< else the command decides, by the library's version
  Text<32> asked;             ///< compute_61, as the option has it
  Text<16> version;           ///< 13.0; empty where the library does not tell
  static constexpr std::size_t kMaxKnown = 64;
  image::ShortName names[kMaxKnown];
  std::string_view known[kMaxKnown];  ///< compute_75 ...
  std::size_t known_count = 0;
};

/// False where the failure is not about an architecture.
bool examine_refusal(const CompilerCall& call, Refusal& out) noexcept;

}  // namespace kshim::shim
