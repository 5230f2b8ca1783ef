// SPDX-License-Identifier: Apache-2.0
// KSHIM_SIM_TRACE=FILE: one line a call, written when it returns:
//   0.001234567 4711 cuMemAlloc_v2(0x7ffe1234, 1024) = 0 CUDA_SUCCESS [0x7f0012340000]
// seconds since the first line, thread, arguments as passed, result, and behind it what was written through
// pointers to single values. Without the variable, no tracing code runs: the table then has no
// tracing wrappers.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/driver_api.h"

namespace kshim::sim {

/// Opens the file of KSHIM_SIM_TRACE once. False when tracing is off or the file cannot be opened (said on
/// stderr).
bool trace_enabled() noexcept;

class TraceLine {
 public:
  explicit TraceLine(std::string_view function) noexcept;
  void text(std::string_view value) noexcept;
  void number(std::int64_t value) noexcept;
  void unsigned_number(std::uint64_t value) noexcept;
  void real(double value) noexcept;
  void pointer(const void* value) noexcept;
  void quoted(const char* value) noexcept;

  template <class T>
  void argument(T value) noexcept {
    if (arguments_++ != 0) text(", ");
    put(value);
  }
  void result(int code) noexcept;
  /// Values behind out-parameters; only after success, only scalars and handles, never `void**` (kernel
  /// arguments).
  template <class T>
  void output(T value) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      using Target = std::remove_pointer_t<T>;
      constexpr bool scalar = std::is_arithmetic_v<Target> || std::is_enum_v<Target>;
      constexpr bool handle = std::is_pointer_v<Target> && !std::is_void_v<std::remove_pointer_t<Target>>;
      if constexpr ((scalar || handle) && !std::is_const_v<Target> && !std::is_same_v<Target, char> &&
                    !std::is_same_v<Target, const char*> && !std::is_same_v<Target, CUjit_option>) {
        if (value == nullptr) return;
        text(outputs_++ == 0 ? " [" : ", ");
        put(*value);
      }
    }
  }
  void write() noexcept;

 private:
  template <class T>
  void put(T value) noexcept {
    if constexpr (std::is_same_v<T, const char*>) {
      quoted(value);
    } else if constexpr (std::is_pointer_v<T> || std::is_same_v<T, CUdeviceptr>) {
      // CUdeviceptr is an unsigned 64-bit number; so are ids: they come out in hex too.
      pointer(reinterpret_cast<const void*>(value));
    } else if constexpr (std::is_enum_v<T>) {
      number(static_cast<std::int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      real(static_cast<double>(value));
    } else if constexpr (std::is_signed_v<T>) {
      number(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      unsigned_number(value);
    } else {
      text("{...}");
    }
  }
  char buffer_[1024];
  std::size_t size_ = 0;
  unsigned arguments_ = 0;
  unsigned outputs_ = 0;
};

}  // namespace kshim::sim
