// SPDX-License-Identifier: Apache-2.0
// string_view calls this for a position out of range, which no caller passes. Defined here, hidden, because
// the real one needs libstdc++. Release builds have libc++, whose checks print and
// abort.
#include <string_view>

#ifdef _LIBCPP_VERSION
_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn, gnu::cold, gnu::visibility("hidden")]] void __libcpp_verbose_abort(const char*, ...) noexcept {
  __builtin_trap();
}
_LIBCPP_END_NAMESPACE_STD
#else  // declared by <string_view>
namespace std {
void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }
}  // namespace std
#endif
