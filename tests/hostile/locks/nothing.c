// SPDX-License-Identifier: Apache-2.0
// The library whose opening stops auditor.c, and from which a function can be called.
typedef long (*Call)(long, long, long, long, long, long, long, long, long, long, long, long);
extern long kshim_test_call(Call function);
long kshim_test_call(Call function) {
  const volatile long result = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return result;
}
