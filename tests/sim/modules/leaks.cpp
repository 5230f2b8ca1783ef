// SPDX-License-Identifier: Apache-2.0
// A driver keeps what a program does not give back until the process ends, and ended contexts while
// a program has their handles: under AddressSanitizer that is no finding here. Every other check stays on.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
