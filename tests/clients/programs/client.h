// SPDX-License-Identifier: Apache-2.0
// What the clients share. Each prints one line a step, "step: result", and exits 1 where a step failed: its
// output is compared with and without the shim.
#pragma once
#include <cstdio>

inline int g_failed = 0;

/// Results are 0 for success in every CUDA library.
inline bool step(const char* name, int result) {
  std::printf("%s: %d\n", name, result);
  std::fflush(stdout);
  if (result != 0) g_failed = 1;
  return result == 0;
}
