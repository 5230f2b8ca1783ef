// SPDX-License-Identifier: Apache-2.0
// What a test tells the plain driver and the plain runtime to do. Both look this up with dlsym().
#pragma once

/// The exported variable `plain_driver` or `plain_runtime`. Fields are plain words: a test sets them before
/// the threads that read them exist.
/// As many words as any of the functions has.
using PlainCall = long (*)(long, long, long, long, long, long, long, long, long, long, long, long);

struct PlainSettings {
  volatile int answer;            ///< what every hooked function returns; 0: it does its work
  const char* volatile stuck_in;  ///< the next call of this function never returns
  volatile PlainCall calls;       ///< called first by each function
  volatile long entered;          ///< calls so far
};
