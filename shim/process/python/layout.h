// SPDX-License-Identifier: Apache-2.0
// The CPython that is loaded: its functions, its types, and the layout of its structures.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kshim::shim {

constexpr std::size_t kNone = ~std::size_t{0};

struct PythonLayout {
  unsigned minor = 0;  ///< 3.minor
  std::size_t interp_threads = 0, tstate_native_id = 0, tstate_frame = 0, cframe_frame = 0;
  std::size_t frame_previous = 0, frame_code = 0, frame_instr = 0, frame_owner = 0;
  std::size_t code_filename = 0, code_name = 0, code_first_line = 0, code_line_table = 0, code_bytes = 0;
  std::size_t unicode_size = 0,
              compact_unicode_size = 0;  ///< sizeof: the text of an ASCII, of another string begins there
  std::size_t tstate_thread_id = 0;      ///< kNone: this_thread() is the state that runs
  std::size_t tstate_interp = 16, tstate_next = 8;
  std::size_t object_type = 8;
  std::size_t unicode_length = 16, unicode_state = 32;
  std::size_t bytes_length = 16, bytes_data = 32;
  std::size_t frame_tlbc = kNone,
              code_tlbc = kNone;  ///< free-threaded: which copy of the bytecode runs, the copies
  std::uintptr_t code_tag = 0;    ///< bits of a frame's code pointer that are no address
  unsigned unicode_kind_bit = 2;  ///< where in unicode_state the bytes of a character stand
};

/// How a code object writes down its lines.
enum class LineTable : std::uint8_t { lnotab, pairs, locations };
constexpr LineTable line_table_of(unsigned minor) noexcept {
  return minor < 10 ? LineTable::lnotab : minor == 10 ? LineTable::pairs : LineTable::locations;
}

struct Python {
  PythonLayout layout;
  std::uintptr_t runtime = 0;  ///< _PyRuntime, which from 3.13 on describes the layout
  std::uintptr_t code_type = 0, unicode_type = 0, bytes_type = 0;
  int (*initialized)() = nullptr;             ///< Py_IsInitialized
  unsigned long (*thread_ident)() = nullptr;  ///< PyThread_get_thread_ident: what tstate_thread_id holds
  void* (*this_thread)() = nullptr;           ///< PyGILState_GetThisThreadState: no GIL needed
  void* (*running_thread)() = nullptr;        ///< _PyThreadState_UncheckedGet: the thread that holds the GIL
  void* (*newest_interpreter)() = nullptr;    ///< PyInterpreterState_Head: no GIL needed
  void* (*main_interpreter)() = nullptr;      ///< PyInterpreterState_Main: no GIL needed
};

/// Caches the result while that file stays loaded. Under the shim's lock.
/// False when no CPython of layouts.def or debug_offsets.def is mapped, or it is not (no longer) initialized.
bool find_python(Python& out) noexcept;

}  // namespace kshim::shim
