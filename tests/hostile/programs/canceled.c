// SPDX-License-Identifier: Apache-2.0
// A loop that a cancellation may leave anywhere: in C, where nothing on the way says that nothing is thrown.
void kshim_test_repeat(long (*call)(const char*), volatile unsigned* count);
void kshim_test_repeat(long (*call)(const char*), volatile unsigned* count) {
  static const char kNames[4][8] = {"k0", "k1", "k2", "k3"};
  for (;;) {
    call(kNames[*count % 4]);
    *count = *count + 1;
  }
}
