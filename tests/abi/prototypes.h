// SPDX-License-Identifier: Apache-2.0
// Compares the rows of hooks.def with a header's prototypes. Names differ by design (types of cuda_abi.h);
// what must agree is the calling convention: number of parameters, and class and size of each.
#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

#include "cuda/cuda_abi.h"

namespace kshim::abi_test {

/// What the calling convention makes of a type.
enum class Class { nothing, integer, pointer, memory };
template <class Type>
constexpr Class class_of() {
  if constexpr (std::is_void_v<Type>)
    return Class::nothing;
  else if constexpr (std::is_pointer_v<Type>)
    return Class::pointer;
  else if constexpr (std::is_integral_v<Type> || std::is_enum_v<Type>)
    return Class::integer;
  else
    return Class::memory;
}
template <class Type>
constexpr std::size_t size_of() {
  if constexpr (std::is_void_v<Type>)
    return 0;
  else
    return sizeof(Type);
}
template <class Ours, class Theirs>
constexpr bool kSame = class_of<Ours>() == class_of<Theirs>() && size_of<Ours>() == size_of<Theirs>();

template <class Ours, class Theirs>
struct Compare : std::false_type {};
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
requires(sizeof...(Ours) == sizeof...(Theirs)) struct Compare<OurResult(Ours...), TheirResult(Theirs...)>
    : std::bool_constant<kSame<OurResult, TheirResult> && (kSame<Ours, Theirs> && ...)> {
};

}  // namespace kshim::abi_test
