/* SPDX-License-Identifier: Apache-2.0
 * Memory functions of our own, hidden. A sanitizer linked into the program stands in for libc's, and while it
 * starts it asks dlsym for the real ones: a call that left this library then would end at an address that is
 * not known yet. */
#include <stddef.h>

#define OWN __attribute__((visibility("hidden")))

#if !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns") /* or the loops become calls of themselves */
#endif

OWN void* memcpy(void* restrict to, const void* restrict from, size_t size);
OWN void* memmove(void* to, const void* from, size_t size);
OWN void* memset(void* to, int value, size_t size);
OWN int memcmp(const void* left, const void* right, size_t size);
OWN void* memchr(const void* in, int value, size_t size);
OWN size_t strlen(const char* text);
OWN size_t strnlen(const char* text, size_t size);
OWN int strncmp(const char* left, const char* right, size_t size);

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  for (size_t i = 0; i < size; ++i) out[i] = in[i];
  return to;
}

void* memmove(void* to, const void* from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  if (out <= in) {
    for (size_t i = 0; i < size; ++i) out[i] = in[i];
  } else {
    for (size_t i = size; i > 0; --i) out[i - 1] = in[i - 1];
  }
  return to;
}

void* memset(void* to, int value, size_t size) {
  unsigned char* out = to;
  for (size_t i = 0; i < size; ++i) out[i] = (unsigned char)value;
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

void* memchr(const void* in, int value, size_t size) {
  const unsigned char* bytes = in;
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] == (unsigned char)value) return (void*)(bytes + i);
  }
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
