// SPDX-License-Identifier: Apache-2.0
// A reference to something that can be called, for a parameter: a lambda of the caller's. No copy, no heap.
#pragma once

namespace kshim::shim {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
  FunctionRef(const Callable& callable) noexcept  // NOLINT: meant to be implicit
      : callable_(&callable), call_([](const void* of, Arguments... arguments) {
          return static_cast<Result>((*static_cast<const Callable*>(of))(arguments...));
        }) {}
  Result operator()(Arguments... arguments) const { return call_(callable_, arguments...); }

 private:
  const void* callable_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace kshim::shim
