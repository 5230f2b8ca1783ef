// SPDX-License-Identifier: Apache-2.0
// string_view's checks call this when a position lies outside. No caller lets that happen; defined here,
// hidden, because the real one would need libstdc++.
namespace std {

[[noreturn, gnu::cold]] void __throw_out_of_range_fmt(const char*,
                                                      ...);  // NOLINT(bugprone-reserved-identifier)
void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }

}  // namespace std
