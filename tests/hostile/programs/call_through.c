// SPDX-License-Identifier: Apache-2.0
// A library with one frame of its own between the program and what it calls.
int call_through(int (*function)(void));
int call_through(int (*function)(void)) {
  volatile int answer = function();
  return answer;
}
