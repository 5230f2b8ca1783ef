// SPDX-License-Identifier: Apache-2.0
// Something that has CPython's names and nothing of its insides: -DMINOR=N is the version that it claims. Its
// thread state is what shape() made last.
#include <stdint.h>
#include <string.h>

static uintptr_t state[512];
static void* current;
uintptr_t _PyRuntime[512];
uintptr_t PyCode_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
#if MINOR >= 11
const unsigned long Py_Version = 0x03000000UL | (unsigned long)MINOR << 16 | 0x1F0UL;
#endif
#define TEXT(n) TEXT_(n)
#define TEXT_(n) #n
const char* Py_GetVersion(void) { return "3." TEXT(MINOR) ".1 (another one)"; }
int Py_IsInitialized(void) { return 1; }
void* PyGILState_GetThisThreadState(void) { return current; }
void* _PyThreadState_UncheckedGet(void) { return current; }
void* PyInterpreterState_Main(void) { return state; }
void* PyInterpreterState_Head(void) { return state; }

// What 3.13 and later say of themselves (_Py_DebugOffsets), as words: a thread with one frame, whose function
// and file are "abc". As 3.13 where no row is of this version.
enum { AS_MINOR = MINOR < 13 || MINOR > 15 ? 13 : MINOR };
static uintptr_t frame[8], code[64], text[8];
static void made_up_world(void) {
#define KSHIM_PYTHON_DEBUG_OFFSETS(minor, words, threads, next, interp, top, native, previous, executable,   \
                                   instr, owner, tlbc, filename, qualname, first_line, line_table, bytecode, \
                                   copies, type, bytes_size, bytes_data, state_, length, ascii_size)         \
  {minor,                                                                                                    \
   {{top, 0},                                                                                                \
    {previous, 8},                                                                                           \
    {executable, 16},                                                                                        \
    {instr, 24},                                                                                             \
    {owner, 32},                                                                                             \
    {filename, 16},                                                                                          \
    {qualname, 16},                                                                                          \
    {line_table, 24},                                                                                        \
    {type, 8},                                                                                               \
    {state_, 16},                                                                                            \
    {length, 24},                                                                                            \
    {ascii_size, 32}}},
  static const struct {
    int minor;
    unsigned char offsets[12][2];
  } rows[] = {
#include "../../../../shim/process/python/debug_offsets.def"
  };
  memset(_PyRuntime, 0, sizeof _PyRuntime);
  for (unsigned row = 0; row < sizeof rows / sizeof *rows; ++row)
    for (unsigned i = 0; rows[row].minor == AS_MINOR && i < 12; ++i)
      _PyRuntime[rows[row].offsets[i][0]] = rows[row].offsets[i][1];
  memcpy(_PyRuntime, "xdebugpy", 8);
  _PyRuntime[1] = 0x03000000UL | (uintptr_t)MINOR << 16 | 0x1F0UL;
  state[0] = (uintptr_t)frame;
  frame[2] = (uintptr_t)code | (AS_MINOR > 13);  // from 3.14 on with a tag
  code[1] = (uintptr_t)PyCode_Type;
  code[2] = (uintptr_t)text;
  text[1] = (uintptr_t)PyUnicode_Type;
  text[2] = 1U << 2 | 1U << 5 | 1U << 6;  // one byte a character, compact, ASCII
  text[3] = 3;
  memcpy(&text[4], "abc", 3);
}

// 0: nothing; 1: every word points at itself; 2: into nowhere; 3: every word points at the state; 4: ones; 5:
// what it says of itself is absurd; 6: it is right, and the only one that may be believed; 7: of another
// version; 8: without its mark; 9: what should be a code object, 10: a string, is something else.
void shape(int kind) {
  current = kind == 0 ? 0 : kind == 2 ? (void*)16 : (void*)state;
  for (unsigned i = 0; i < sizeof state / sizeof *state; ++i) {
    const uintptr_t self = (uintptr_t)&state[i];
    state[i] = kind == 1 ? self : kind == 2 ? 16 : kind == 4 ? 1 : (uintptr_t)state;
    _PyRuntime[i] = kind == 5 ? UINTPTR_MAX - i : i * 8;
  }
  memcpy(_PyRuntime, "xdebugpy", 8);
  _PyRuntime[1] = 0x030001F0UL | (uintptr_t)AS_MINOR << 16;
  if (kind < 6) return;
  made_up_world();
  if (kind == 7) _PyRuntime[1] ^= 0x00030000;
  if (kind == 8) memcpy(_PyRuntime, "xdebugpx", 8);
  if (kind == 9) code[1] = (uintptr_t)PyUnicode_Type;
  if (kind == 10) text[1] = (uintptr_t)PyCode_Type;
}
