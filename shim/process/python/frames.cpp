// SPDX-License-Identifier: Apache-2.0
#include "process/python/frames.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "guest/process_generation.h"
#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "process/python/layout.h"
#include "process/python/lines.h"

namespace kshim::shim {

using Address = std::uintptr_t;

/// Reads one thread's frames into a PythonStack.
class FrameWalk {
 public:
  FrameWalk(const Python& python, PythonStack& out) noexcept
      : python_(python), layout_(python.layout), out_(out) {}

  /// False if a check failed; the frames found before are correct.
  bool walk(Address thread) noexcept;
  /// The frame a thread state points at; 0 where there is none.
  Address top_frame(Address thread) const noexcept;
  Address main_thread(Address interpreter) const noexcept;
  /// The calling thread's state, in whichever interpreter it runs.
  Address this_thread() const noexcept;

 private:
  template <class T>
  static std::optional<T> read(Address from, std::size_t offset) noexcept {
    T value{};
    if (from == 0 || offset == kNone || !read_memory(from + offset, &value, sizeof value)) return {};
    return value;
  }
  bool has_type(Address object, Address type) const noexcept {
    return read<Address>(object, layout_.object_type).value_or(0) == type;
  }
  bool is_of_this_thread(Address thread) const noexcept;
  Address thread_with_frames(Address interpreter) const noexcept;
  bool add_frame(Address frame, Address code) noexcept;
  Address bytecode(Address frame, Address code) const noexcept;
  std::optional<std::int64_t> offset_in_code(Address frame, Address code) const noexcept;
  std::string_view text(Address unicode) noexcept;
  template <class Unit>
  std::string_view encode(Address data, std::size_t length) noexcept;
  void put_utf8(std::uint32_t point) noexcept;
  std::optional<std::uint64_t> line(Address frame, Address code) const noexcept;

  static constexpr int kMaxThreads = 4096;
  static constexpr int kInterpretersOwn =
      3;  // from there on no function's: FRAME_OWNED_BY_INTERPRETER, _CSTACK
  // Code that the interpreter makes for itself has one text as file and name, no lines, and is in none of
  // Python's own tracebacks: _Py_InitCleanup of 3.13 (Python/specialize.c) below an __init__ that a
  // specialized call has entered, and 3.12's trampoline, if its frame loses its owner meanwhile.
  static constexpr std::string_view kInitCleanup = "__init__";
  static constexpr std::string_view kTrampoline = "<interpreter trampoline>";
  const Python& python_;
  const PythonLayout& layout_;
  PythonStack& out_;
};

Address FrameWalk::top_frame(Address thread) const noexcept {
  Address frame = read<Address>(thread, layout_.tstate_frame).value_or(0);
  if (layout_.cframe_frame != kNone) frame = read<Address>(frame, layout_.cframe_frame).value_or(0);
  return frame;
}

bool FrameWalk::is_of_this_thread(Address thread) const noexcept {
  return read<unsigned long>(thread, layout_.tstate_thread_id) == python_.thread_ident();
}

Address FrameWalk::thread_with_frames(Address interpreter) const noexcept {
  Address thread = read<Address>(interpreter, layout_.interp_threads).value_or(0);
  for (int i = 0; thread != 0 && i < kMaxThreads; ++i) {
    if (is_of_this_thread(thread) && top_frame(thread) != 0) return thread;
    thread = read<Address>(thread, layout_.tstate_next).value_or(0);
  }
  return 0;
}

// Up to 3.11 PyGILState_GetThisThreadState() returns the state in the interpreter that the thread used first.
// The thread that holds the GIL is running. A thread that has released it is searched for, newest interpreter
// first: that one was called by the others.
Address FrameWalk::this_thread() const noexcept {
  constexpr int kMaxInterpreters = 256;
  const auto known = reinterpret_cast<Address>(python_.this_thread());
  if (layout_.tstate_thread_id == kNone || python_.thread_ident == nullptr ||
      python_.running_thread == nullptr || python_.newest_interpreter == nullptr)
    return known;
  const auto running = reinterpret_cast<Address>(python_.running_thread());
  if (is_of_this_thread(running)) return running;
  auto interpreter = reinterpret_cast<Address>(python_.newest_interpreter());
  if (read<Address>(interpreter, 0).value_or(0) == 0) return known;  // there is only one
  for (int i = 0; interpreter != 0 && i < kMaxInterpreters; ++i) {
    if (const Address thread = thread_with_frames(interpreter); thread != 0) return thread;
    interpreter = read<Address>(interpreter, 0).value_or(0);  // PyInterpreterState begins with the next one
  }
  return known;
}

// The list begins with the newest thread; the main one is the oldest, and from 3.11 on known by its kernel
// id.
Address FrameWalk::main_thread(Address interpreter) const noexcept {
  const auto process = static_cast<unsigned long>(raw::process());
  Address thread = read<Address>(interpreter, layout_.interp_threads).value_or(0);
  for (int i = 0; thread != 0 && i < kMaxThreads; ++i) {
    const Address next = read<Address>(thread, layout_.tstate_next).value_or(0);
    if (layout_.tstate_native_id != kNone) {
      if (read<unsigned long>(thread, layout_.tstate_native_id) == process) return thread;
    } else if (next == 0) {
      return thread;
    }
    thread = next;
  }
  return 0;
}

void FrameWalk::put_utf8(std::uint32_t point) noexcept {
  const auto put = [this](std::uint32_t byte) { out_.text_[out_.text_used_++] = static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6U), put(0x80 | (point & 0x3FU));
  } else if (point >= 0xDC80 && point <= 0xDCFF) {
    put(point & 0xFFU);  // a byte of a file name that is no text: PEP 383
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12U), put(0x80 | (point >> 6U & 0x3FU)), put(0x80 | (point & 0x3FU));
  } else {
    put(0xF0 | (point >> 18U & 7U)), put(0x80 | (point >> 12U & 0x3FU));
    put(0x80 | (point >> 6U & 0x3FU)), put(0x80 | (point & 0x3FU));
  }
}

template <class Unit>
std::string_view FrameWalk::encode(Address data, std::size_t length) noexcept {
  constexpr std::size_t kBlock = 64;
  constexpr std::size_t kMaxPointLength = 4;
  const std::size_t start = out_.text_used_;
  for (std::size_t done = 0; done < length;) {
    Unit block[kBlock];
    const std::size_t count = std::min(kBlock, length - done);
    if (!read_memory(data + done * sizeof(Unit), block, count * sizeof(Unit))) return {};
    for (std::size_t i = 0; i < count; ++i) {
      if (out_.text_used_ + kMaxPointLength > sizeof out_.text_) return {};
      put_utf8(block[i]);
    }
    done += count;
  }
  return {out_.text_ + start, out_.text_used_ - start};
}

// PyASCIIObject.state: 2 bits interned (or 8), 3 bits bytes a character, then compact and ascii.
std::string_view FrameWalk::text(Address unicode) noexcept {
  constexpr std::size_t kMaxLength = 2048;
  const auto state = read<std::uint32_t>(unicode, layout_.unicode_state);
  const auto length = read<std::uint64_t>(unicode, layout_.unicode_length);
  if (!state || !length || !has_type(unicode, python_.unicode_type)) return {};
  const std::uint32_t form = *state >> layout_.unicode_kind_bit;
  const unsigned kind = form & 7U;
  const bool compact = (form >> 3U & 1U) != 0;
  const bool ascii = (form >> 4U & 1U) != 0;
  if (!compact) return {};
  const Address data = unicode + (ascii ? layout_.unicode_size : layout_.compact_unicode_size);
  const std::size_t size = std::min<std::size_t>(*length, kMaxLength);
  switch (kind) {
    case 1:
      return encode<std::uint8_t>(data, size);
    case 2:
      return encode<std::uint16_t>(data, size);
    case 4:
      return encode<std::uint32_t>(data, size);
    default:
      return {};
  }
}

// A free-threaded interpreter gives each thread its own copy (_PyCodeArray: a count, then pointers), the
// first of which is the code object's own.
Address FrameWalk::bytecode(Address frame, Address code) const noexcept {
  if (layout_.code_tlbc == kNone) return code + layout_.code_bytes;
  const auto index = read<std::int32_t>(frame, layout_.frame_tlbc);
  const Address copies = read<Address>(code, layout_.code_tlbc).value_or(0);
  const auto count = read<std::int64_t>(copies, 0);
  if (!index || !count || *index < 0 || *index >= *count) return 0;
  return read<Address>(copies, (static_cast<std::size_t>(*index) + 1) * sizeof(Address)).value_or(0);
}

std::optional<std::int64_t> FrameWalk::offset_in_code(Address frame, Address code) const noexcept {
  constexpr std::int64_t kCodeUnit = 2;
  if (layout_.code_bytes != kNone) {
    const auto instruction = read<Address>(frame, layout_.frame_instr);
    const Address begin = bytecode(frame, code);
    if (!instruction || begin == 0 || *instruction < begin) return {};
    return static_cast<std::int64_t>(*instruction - begin);
  }
  const auto last =
      read<std::int32_t>(frame, layout_.frame_instr);  // f_lasti: bytes, from 3.10 on code units
  if (!last || *last < 0) return {};
  return layout_.minor >= 10 ? *last * kCodeUnit : *last;
}

std::optional<std::uint64_t> FrameWalk::line(Address frame, Address code) const noexcept {
  const auto offset = offset_in_code(frame, code);
  const auto first_line = read<std::int32_t>(code, layout_.code_first_line);
  const Address table = read<Address>(code, layout_.code_line_table).value_or(0);
  const auto size = read<std::uint64_t>(table, layout_.bytes_length);
  if (!offset || !first_line || !size || !has_type(table, python_.bytes_type)) return {};
  return line_of(line_table_of(layout_.minor), TableReader(table + layout_.bytes_data, *size), *first_line,
                 *offset);
}

bool FrameWalk::add_frame(Address frame, Address code) noexcept {
  const std::size_t text_before = out_.text_used_;
  const std::string_view file = text(read<Address>(code, layout_.code_filename).value_or(0));
  const std::string_view function = text(read<Address>(code, layout_.code_name).value_or(0));
  const auto at = line(frame, code);
  if (!at && file == function && (file == kInitCleanup || file == kTrampoline)) {
    out_.text_used_ = text_before;
    return true;
  }
  if (file.data() == nullptr || function.data() == nullptr) {
    out_.text_used_ = text_before;
    return false;
  }
  out_.rows_[out_.count_++] = {file, at.value_or(0), function};
  return true;
}

bool FrameWalk::walk(Address thread) noexcept {
  constexpr int kMaxSteps = 4 * PythonStack::kMaxFrames;
  Address frame = top_frame(thread);
  for (int i = 0; frame != 0 && i < kMaxSteps && out_.count_ < PythonStack::kMaxFrames; ++i) {
    const auto previous = read<Address>(frame, layout_.frame_previous);
    const auto executable = read<Address>(frame, layout_.frame_code);
    if (!previous || !executable) return false;
    const Address code = *executable & ~layout_.code_tag;
    const bool own = layout_.frame_owner != kNone &&
                     read<std::uint8_t>(frame, layout_.frame_owner).value_or(0) >= kInterpretersOwn;
    if (!own && (!has_type(code, python_.code_type) || !add_frame(frame, code))) return false;
    frame = *previous;
  }
  return true;
}

bool PythonStack::capture_this_thread() noexcept {
  clear();
  Python python;
  if (!find_python(python)) return false;
  FrameWalk walk(python, *this);
  const Address thread = walk.this_thread();
  if (thread == 0) return false;
  walk.walk(thread);
  return count_ != 0;
}

// The main thread may be running: the frames count only if its innermost frame did not change meanwhile.
bool PythonStack::capture_main_thread() noexcept {
  clear();
  Python python;
  if (thread_id() == raw::process() || !find_python(python)) return false;
  FrameWalk walk(python, *this);
  const Address thread = walk.main_thread(reinterpret_cast<Address>(python.main_interpreter()));
  const Address top = thread == 0 ? 0 : walk.top_frame(thread);
  if (top == 0) return false;
  if (!walk.walk(thread) || walk.top_frame(thread) != top) clear();
  return count_ != 0;
}

}  // namespace kshim::shim
