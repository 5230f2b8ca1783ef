/* SPDX-License-Identifier: Apache-2.0
 * The shim's own memory functions, hidden. A sanitizer that is linked into the program replaces libc's. While
 * it starts, it looks the real ones up with dlsym, which is the shim's: a call to the sanitizer's functions
 * at that time would jump to a null pointer. */
#include <stddef.h>

#define OWN __attribute__((visibility("hidden")))

#if !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns") /* or the loops become calls of themselves */
#endif

OWN void* memcpy(void* restrict to, const void* restrict from, size_t size);
OWN void* memmove(void* to, const void* from, size_t size);
OWN void* memset(void* to, int value, size_t size);
/* Ubuntu's libunwind.a needs it. */
OWN void* __memcpy_chk(void* to, const void* from, size_t size, size_t room);
OWN int memcmp(const void* left, const void* right, size_t size);
OWN int bcmp(const void* left, const void* right, size_t size); /* what clang makes of a memcmp() == 0 */
OWN void* memchr(const void* in, int value, size_t size);
OWN size_t strlen(const char* text);
OWN size_t strnlen(const char* text, size_t size);
OWN int strncmp(const char* left, const char* right, size_t size);

/* Eight bytes at a time, wherever they lie: the compiler makes one instruction of each. */
typedef unsigned long long word;
static inline word load(const unsigned char* from) {
  word value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
static inline void store(unsigned char* to, word value) { __builtin_memcpy(to, &value, sizeof value); }

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  if (size < sizeof(word)) {
    for (; size > 0; --size) *out++ = *in++;
    return to;
  }
  /* The last word may cover some of the one before it. */
  const word last = load(in + size - sizeof(word));
  unsigned char* const end = out + size - sizeof(word);
  for (; size >= 2 * sizeof(word); size -= 2 * sizeof(word)) {
    const word first = load(in);
    const word second = load(in + sizeof(word));
    store(out, first);
    store(out + sizeof(word), second);
    in += 2 * sizeof(word);
    out += 2 * sizeof(word);
  }
  if (size > sizeof(word)) store(out, load(in));
  store(end, last);
  return to;
}

void* memmove(void* to, const void* from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  if (out <= in) {
    for (; size >= sizeof(word); size -= sizeof(word)) {
      store(out, load(in));
      in += sizeof(word);
      out += sizeof(word);
    }
    for (; size > 0; --size) *out++ = *in++;
  } else {
    for (; size >= sizeof(word); size -= sizeof(word))
      store(out + size - sizeof(word), load(in + size - sizeof(word)));
    for (; size > 0; --size) out[size - 1] = in[size - 1];
  }
  return to;
}

void* memset(void* to, int value, size_t size) {
  unsigned char* out = to;
  const word bytes = (unsigned char)value * 0x0101010101010101ULL;
  for (; size >= 2 * sizeof(word); size -= 2 * sizeof(word)) {
    store(out, bytes);
    store(out + sizeof(word), bytes);
    out += 2 * sizeof(word);
  }
  for (; size > 0; --size) *out++ = (unsigned char)value;
  return to;
}

int memcmp(const void* left, const void* right, size_t size) {
  const unsigned char* a = left;
  const unsigned char* b = right;
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}
int bcmp(const void* left, const void* right, size_t size) { return memcmp(left, right, size); }

void* memchr(const void* in, int value, size_t size) {
  const unsigned char* bytes = in;
  const unsigned char* const end = bytes + size;
  const word ones = ~(word)0 / 0xff;
  const word pattern = ones * (unsigned char)value;
  for (; end - bytes >= (ptrdiff_t)sizeof(word); bytes += sizeof(word)) {
    /* The lowest byte that is zero has its high bit set; both architectures are little-endian. */
    const word differing = load(bytes) ^ pattern;
    const word zero = (differing - ones) & ~differing & ones << 7;
    if (zero != 0) return (void*)(bytes + __builtin_ctzll(zero) / 8);
  }
  for (; bytes < end; ++bytes)
    if (*bytes == (unsigned char)value) return (void*)bytes;
  return NULL;
}

size_t strnlen(const char* text, size_t size) {
  size_t length = 0;
  while (length < size && text[length] != '\0') ++length;
  return length;
}

size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

int strncmp(const char* left, const char* right, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const unsigned char a = (unsigned char)left[i];
    const unsigned char b = (unsigned char)right[i];
    if (a != b) return a < b ? -1 : 1;
    if (a == 0) break;
  }
  return 0;
}

/* `room` is the destination's size. The host must not end because of an overflow here, nor be overwritten:
 * clamp. */
void* __memcpy_chk(void* to, const void* from, size_t size, size_t room) {
  return memcpy(to, from, size < room ? size : room);
}
