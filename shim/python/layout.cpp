// SPDX-License-Identifier: Apache-2.0
#include "python/layout.h"

#include <cstring>
#include <string_view>

#include "guest.h"
#include "hooks.h"
#include "objects.h"

namespace kshim::shim {
namespace {

constexpr PythonLayout kLayouts[] = {
#define KSHIM_PYTHON_LAYOUT(minor, interp_threads, tstate_native_id, tstate_frame, cframe_frame,            \
                            frame_previous, frame_code, frame_instr, frame_owner, code_filename, code_name, \
                            code_first_line, code_line_table, code_bytes, unicode_size,                     \
                            compact_unicode_size, tstate_thread_id)                                         \
  {                                                                                                         \
      minor,           interp_threads, tstate_native_id, tstate_frame,                                      \
      cframe_frame,    frame_previous, frame_code,       frame_instr,                                       \
      frame_owner,     code_filename,  code_name,        code_first_line,                                   \
      code_line_table, code_bytes,     unicode_size,     compact_unicode_size,                              \
      tstate_thread_id},
#include "python/layouts.def"
#undef KSHIM_PYTHON_LAYOUT
};

constexpr unsigned kFirstSelfDescribing = 13;
constexpr unsigned kLastKnown = 13;

/// _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h): words after the cookie. Later minors move
/// them.
struct DebugOffsets {
  char cookie[8];
  std::uint64_t version, free_threaded;
  std::uint64_t runtime[3];
  struct {
    std::uint64_t size, id, next, threads_head, rest[9];
  } interpreter;
  struct {
    std::uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id, rest[2];
  } thread;
  struct {
    std::uint64_t size, previous, executable, instr_ptr, localsplus, owner;
  } frame;
  struct {
    std::uint64_t size, filename, name, qualname, linetable, firstlineno, rest[3], co_code_adaptive;
  } code;
  struct {
    std::uint64_t size, ob_type;
  } object;
  std::uint64_t type_object[4], tuple_object[3], list_object[3], dict_object[3], float_object[2],
      long_object[3];
  struct {
    std::uint64_t size, ob_size, ob_sval;
  } bytes;
  struct {
    std::uint64_t size, state, length, asciiobject_size;
  } unicode;
};

bool read_debug_offsets(std::uintptr_t runtime, unsigned minor, PythonLayout& out) noexcept {
  DebugOffsets said;
  if (!read_memory(runtime, &said, sizeof said)) return false;
  if (std::string_view(said.cookie, sizeof said.cookie) != "xdebugpy" ||
      (said.version >> 16U) != 0x0300U + minor)
    return false;
  out.minor = minor;
  out.interp_threads = said.interpreter.threads_head;
  out.tstate_native_id = said.thread.native_thread_id;
  out.tstate_frame = said.thread.current_frame;
  out.cframe_frame = kNone;
  out.tstate_thread_id = kNone;
  out.tstate_interp = said.thread.interp;
  out.tstate_next = said.thread.next;
  out.frame_previous = said.frame.previous;
  out.frame_code = said.frame.executable;
  out.frame_instr = said.frame.instr_ptr;
  out.frame_owner = said.frame.owner;
  out.code_filename = said.code.filename;
  out.code_name = said.code.qualname;
  out.code_first_line = said.code.firstlineno;
  out.code_line_table = said.code.linetable;
  out.code_bytes = said.code.co_code_adaptive;
  out.object_type = said.object.ob_type;
  out.unicode_size = said.unicode.asciiobject_size;
  // PyCompactUnicodeObject adds utf8_length and utf8.
  out.compact_unicode_size = said.unicode.asciiobject_size + 2 * sizeof(void*);
  out.unicode_length = said.unicode.length;
  out.unicode_state = said.unicode.state;
  out.bytes_length = said.bytes.ob_size;
  out.bytes_data = said.bytes.ob_sval;
  return true;
}

void* symbol(const ObjectView& object, std::string_view name) noexcept {
  return object.elf.find_symbol(name, gnu_hash(name));
}

bool search_python(void* context, const ObjectView& object) {
  if (symbol(object, "_PyRuntime") == nullptr || symbol(object, "PyGILState_GetThisThreadState") == nullptr)
    return true;
  *static_cast<ObjectView*>(context) = object;
  return false;
}

/// 3.N as N; 0 where it cannot be told.
unsigned minor_of(const ObjectView& object) noexcept {
  // A constant since 3.11: 0x030B07F0.
  if (const void* number = symbol(object, "Py_Version"); number != nullptr) {
    unsigned long version = 0;
    std::memcpy(&version, number, sizeof version);
    return version >> 24U == 3 ? (version >> 16U) & 0xFFU : 0;
  }
  using VersionFn = const char* (*)();
  const auto version = reinterpret_cast<VersionFn>(symbol(object, "Py_GetVersion"));
  if (version == nullptr) return 0;
  const std::string_view text(version());
  unsigned minor = 0;
  for (std::size_t i = 2; text.starts_with("3.") && i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
    minor = minor * 10 + static_cast<unsigned>(text[i] - '0');
  return minor;
}

}  // namespace

bool find_python(Python& out) noexcept {
  using InitializedFn = int (*)();
  ObjectView object;
  each_mapped(search_python, &object);
  if (!object) return false;
  const auto initialized = reinterpret_cast<InitializedFn>(symbol(object, "Py_IsInitialized"));
  out.running_thread = reinterpret_cast<void* (*)()>(symbol(object, "_PyThreadState_UncheckedGet"));
  out.newest_interpreter = reinterpret_cast<void* (*)()>(symbol(object, "PyInterpreterState_Head"));
  out.this_thread = reinterpret_cast<void* (*)()>(symbol(object, "PyGILState_GetThisThreadState"));
  out.main_interpreter = reinterpret_cast<void* (*)()>(symbol(object, "PyInterpreterState_Main"));
  out.code_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyCode_Type"));
  out.unicode_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyUnicode_Type"));
  out.bytes_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyBytes_Type"));
  if (initialized == nullptr || initialized() == 0 || out.main_interpreter == nullptr || out.code_type == 0 ||
      out.unicode_type == 0 || out.bytes_type == 0)
    return false;
  const unsigned minor = minor_of(object);
  if (minor >= kFirstSelfDescribing)
    return minor <= kLastKnown &&
           read_debug_offsets(reinterpret_cast<std::uintptr_t>(symbol(object, "_PyRuntime")), minor,
                              out.layout);
  for (const PythonLayout& known : kLayouts)
    if (known.minor == minor) {
      out.layout = known;
      return true;
    }
  return false;
}

}  // namespace kshim::shim
