// SPDX-License-Identifier: Apache-2.0
#include "process/python/layout.h"

#include <atomic>
#include <cstring>
#include <string_view>

#include "guest/clock.h"
#include "guest/safe_memory.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"

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
#include "process/python/layouts.def"
#undef KSHIM_PYTHON_LAYOUT
};

constexpr unsigned kFirstSelfDescribing = 13;

/// Where the fields of _Py_DebugOffsets are, in words.
struct DebugOffsets {
  unsigned minor, words;
  unsigned interp_threads, thread_next, thread_interp, thread_frame, thread_native_id;
  unsigned frame_previous, frame_code, frame_instr, frame_owner, frame_tlbc;
  unsigned code_filename, code_name, code_first_line, code_line_table, code_bytes, code_tlbc;
  unsigned object_type, bytes_length, bytes_data, unicode_state, unicode_length, unicode_size;
};

constexpr DebugOffsets kDebugOffsets[] = {
#define KSHIM_PYTHON_DEBUG_OFFSETS(...) {__VA_ARGS__},
#include "process/python/debug_offsets.def"
#undef KSHIM_PYTHON_DEBUG_OFFSETS
};

constexpr std::size_t most_words() noexcept {
  std::size_t most = 0;
  for (const DebugOffsets& known : kDebugOffsets) most = known.words > most ? known.words : most;
  return most;
}

/// `words`: the words of _Py_DebugOffsets in the interpreter's memory.
bool parse_layout(const DebugOffsets& at, const std::uint64_t* words, PythonLayout& out) noexcept {
  constexpr std::size_t kCookie = 0, kVersion = 1, kFreeThreaded = 2;
  constexpr unsigned kFirstTaggedCode = 14;  // frames keep a _PyStackRef, and TLBC is there
  if (std::memcmp(&words[kCookie], "xdebugpy", sizeof words[kCookie]) != 0 ||
      (words[kVersion] >> 16U) != 0x0300U + at.minor)
    return false;
  out.minor = at.minor;
  out.interp_threads = words[at.interp_threads];
  out.tstate_native_id = words[at.thread_native_id];
  out.tstate_frame = words[at.thread_frame];
  out.cframe_frame = kNone;
  out.tstate_thread_id = kNone;
  out.tstate_interp = words[at.thread_interp];
  out.tstate_next = words[at.thread_next];
  out.frame_previous = words[at.frame_previous];
  out.frame_code = words[at.frame_code];
  out.frame_instr = words[at.frame_instr];
  out.frame_owner = words[at.frame_owner];
  out.code_filename = words[at.code_filename];
  out.code_name = words[at.code_name];
  out.code_first_line = words[at.code_first_line];
  out.code_line_table = words[at.code_line_table];
  out.code_bytes = words[at.code_bytes];
  out.object_type = words[at.object_type];
  out.unicode_size = words[at.unicode_size];
  // PyCompactUnicodeObject adds utf8_length and utf8.
  out.compact_unicode_size = words[at.unicode_size] + 2 * sizeof(void*);
  out.unicode_length = words[at.unicode_length];
  out.unicode_state = words[at.unicode_state];
  out.bytes_length = words[at.bytes_length];
  out.bytes_data = words[at.bytes_data];
  if (at.minor < kFirstTaggedCode) return true;
  out.code_tag = 3;
  if (words[kFreeThreaded] == 0) return true;
  out.frame_tlbc = words[at.frame_tlbc];
  out.code_tlbc = words[at.code_tlbc];
  out.unicode_kind_bit = 8;  // `interned` is a byte of its own there
  return true;
}

bool read_debug_offsets(std::uintptr_t runtime, unsigned minor, PythonLayout& out) noexcept {
  for (const DebugOffsets& known : kDebugOffsets) {
    std::uint64_t words[most_words()];
    if (known.minor == minor)
      return read_memory(runtime, words, known.words * sizeof *words) && parse_layout(known, words, out);
  }
  return false;
}

void* symbol(const LoadedObject& object, std::string_view name) noexcept {
  return object.elf.find_symbol(name, gnu_hash(name));
}

struct PythonSearch {
  PageCache pages;
  LoadedObject found;
};
bool search_python(void* context, const LoadedObject& object) {
  auto& search = *static_cast<PythonSearch*>(context);
  const LoadedElf elf = object.elf.through(search.pages);
  constexpr std::string_view kRuntime = "_PyRuntime";
  constexpr std::string_view kThread = "PyGILState_GetThisThreadState";
  if (elf.find_symbol(kRuntime, gnu_hash(kRuntime)) == nullptr ||
      elf.find_symbol(kThread, gnu_hash(kThread)) == nullptr)
    return true;
  search.found = object;
  return false;
}

/// What was found last. Under the shim's lock.
struct KnownPython {
  std::uintptr_t address = 0;    ///< in its file
  std::uint64_t mapping_id = 0;  ///< number of its mapping; 0 = none
  Python python;
  /// No file was found among the mappings up to this number.
  std::uint64_t searched = 0;
  RateLimit searches;
};
constinit KnownPython g_known;

LoadedObject known_python() noexcept {
  if (g_known.mapping_id == 0) return {};
  const LoadedObject object = find_loaded_object(g_known.address);
  return object.mapping_id == g_known.mapping_id ? object : LoadedObject();
}

/// Looks into the files that were mapped since the last search.
LoadedObject search_for_python() noexcept {
  PythonSearch search;
  if (g_known.mapping_id == 0 && !g_known.searches.is_due()) return {};
  const std::uint64_t after = g_known.mapping_id == 0 ? g_known.searched : 0;
  g_known.searches.run(
      [&] { g_known.searched = for_each_loaded_object(search_python, &search, {.after = after}); });
  return search.found;
}

/// N of 3.N; 0 if unknown.
unsigned minor_of(const LoadedObject& object) noexcept {
  // A constant since 3.11: 0x030B07F0.
  if (const void* number = symbol(object, "Py_Version"); number != nullptr) {
    unsigned long version = 0;
    if (!object.elf.copy(reinterpret_cast<std::uintptr_t>(number), version)) return 0;
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

namespace {

using InitializedFn = int (*)();

bool read_python(const LoadedObject& object, Python& out) noexcept {
  out.initialized = reinterpret_cast<InitializedFn>(symbol(object, "Py_IsInitialized"));
  out.thread_ident = reinterpret_cast<unsigned long (*)()>(symbol(object, "PyThread_get_thread_ident"));
  out.running_thread = reinterpret_cast<void* (*)()>(symbol(object, "_PyThreadState_UncheckedGet"));
  out.newest_interpreter = reinterpret_cast<void* (*)()>(symbol(object, "PyInterpreterState_Head"));
  out.this_thread = reinterpret_cast<void* (*)()>(symbol(object, "PyGILState_GetThisThreadState"));
  out.main_interpreter = reinterpret_cast<void* (*)()>(symbol(object, "PyInterpreterState_Main"));
  out.code_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyCode_Type"));
  out.unicode_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyUnicode_Type"));
  out.bytes_type = reinterpret_cast<std::uintptr_t>(symbol(object, "PyBytes_Type"));
  if (out.initialized == nullptr || out.main_interpreter == nullptr || out.code_type == 0 ||
      out.unicode_type == 0 || out.bytes_type == 0 || out.initialized() == 0)
    return false;
  const unsigned minor = minor_of(object);
  out.layout.minor = minor;
  if (minor >= kFirstSelfDescribing) {
    out.runtime = reinterpret_cast<std::uintptr_t>(symbol(object, "_PyRuntime"));
    return true;
  }
  for (const PythonLayout& known : kLayouts)
    if (known.minor == minor) {
      out.layout = known;
      return true;
    }
  return false;
}

}  // namespace

bool find_python(Python& out) noexcept {
  LoadedObject object = known_python();
  if (!object) {
    object = search_for_python();
    g_known.mapping_id = 0;
    if (!object) return false;
    g_known.python = Python();
    g_known.address = object.elf.dynamic();
    g_known.mapping_id = object.mapping_id;
  }
  if (g_known.python.layout.minor == 0 && !read_python(object, g_known.python)) {
    g_known.python = Python();
    return false;
  }
  out = g_known.python;
  if (out.initialized() == 0) return false;
  const unsigned minor = out.layout.minor;
  return minor < kFirstSelfDescribing || read_debug_offsets(out.runtime, minor, out.layout);
}

}  // namespace kshim::shim
