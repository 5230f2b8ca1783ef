// SPDX-License-Identifier: Apache-2.0
// Stacks as the shim takes them, for a caller from Python.
#include <pthread.h>

#include <cstddef>

#include "kshim/report/writer.h"
#include "process/python/frames.h"
#include "process/stack/native.h"

namespace {

// As in the shim: one stack, and a lock around it.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
struct Locked {
  Locked() { pthread_mutex_lock(&g_lock); }
  ~Locked() { pthread_mutex_unlock(&g_lock); }
};
kshim::shim::PythonStack g_python;
kshim::shim::NativeStack g_native;

template <class Row>
std::size_t write_rows(std::span<const Row> rows, char* out, std::size_t size) {
  kshim::report::JsonBuffer buffer({out, size});
  buffer.text("[");
  bool first = true;
  for (const Row& row : rows) {
    if (!first) buffer.text(",");
    first = false;
    kshim::report::write_element(buffer, row);
  }
  buffer.text("]");
  return buffer.full() ? 0 : buffer.size();
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] std::size_t probe_python(char* out, std::size_t size) {
  const Locked locked;
  g_python.capture_this_thread();
  return write_rows(g_python.rows(), out, size);
}
[[gnu::visibility("default")]] std::size_t probe_python_main(char* out, std::size_t size) {
  const Locked locked;
  g_python.capture_main_thread();
  return write_rows(g_python.rows(), out, size);
}
[[gnu::visibility("default")]] std::size_t probe_native(char* out, std::size_t size) {
  const Locked locked;
  g_native.capture();
  return write_rows(g_native.rows(), out, size);
}
}
