// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. No heap, no exceptions: the shim links it.
#pragma once
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace kshim {

enum class Errc : std::uint8_t {
#define KSHIM_ERROR(name, text) name,
#include "kshim/base/errors.def"
#undef KSHIM_ERROR
};

/// The message of an error code, as a phrase that follows a name ("FILE: ends before ...").
constexpr const char* describe(Errc code) noexcept {
  switch (code) {
#define KSHIM_ERROR(name, text) \
  case Errc::name:              \
    return text;
#include "kshim/base/errors.def"
#undef KSHIM_ERROR
  }
  return "is wrong in an unknown way";
}

/// `offset`: bytes from the start of the parser's input.
struct Error {
  Errc code;
  std::uint64_t offset = 0;
};

/// A value or an Error. Reading the wrong one is undefined, as with std::expected::operator*: test first.
template <class T>
class [[nodiscard]] Result {
  static_assert(std::is_trivially_copyable_v<T>, "views and plain records only: the shim has no heap");

 public:
  constexpr Result(T value) noexcept : value_(value), ok_(true) {}  // NOLINT(google-explicit-constructor)
  constexpr Result(Error error) noexcept
      : error_(error), ok_(false) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator bool() const noexcept { return ok_; }
  constexpr bool ok() const noexcept { return ok_; }
  constexpr const T& value() const noexcept { return value_; }
  constexpr const T& operator*() const noexcept { return value_; }
  constexpr const T* operator->() const noexcept { return &value_; }
  constexpr Error error() const noexcept { return error_; }
  constexpr T value_or(T other) const noexcept { return ok_ ? value_ : other; }

 private:
  union {
    T value_;
    Error error_;
  };
  bool ok_;
};

}  // namespace kshim
