// SPDX-License-Identifier: Apache-2.0
#include "process/stack/native.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "guest/errno_keeper.h"
#include "guest/safe_memory.h"
#include "guest/scratch_stack.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "process/loaded_objects.h"
#include "process/stack/walk.h"

namespace kshim::shim {
namespace {

struct Addresses {
  std::uintptr_t rows[NativeStack::kMaxFrames];
  std::size_t count = 0;
};

// A stack pointer that does not grow means that a frame was misread (hand-written assembly, JIT code): going
// on from there could touch memory that is not there.
void unwind(void* context_of_walk) noexcept {
  auto& out = *static_cast<Addresses*>(context_of_walk);
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != UNW_ESUCCESS || unw_init_local(&cursor, &context) != UNW_ESUCCESS) return;
  unw_word_t last_stack = 0;
  bool outside = false;
  while (out.count < NativeStack::kMaxFrames && unw_step(&cursor) > 0) {
    unw_word_t address = 0;
    unw_word_t stack = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != UNW_ESUCCESS || address == 0) return;
    if (unw_get_reg(&cursor, UNW_REG_SP, &stack) != UNW_ESUCCESS) return;
    // The shim's frames may lie on two stacks (scratch_stack.h), the host's are on one.
    if (stack <= last_stack && !(is_shim(address) || is_on_scratch_stack(last_stack))) return;
    std::uintptr_t top = 0;
    if (!read_memory(stack, &top, sizeof top)) return;
    last_stack = stack;
    outside = outside || !is_shim(address);
    if (outside) out.rows[out.count++] = address;
  }
}

}  // namespace

namespace {

/// A file that may be gone, or another one, when the report is read.
bool is_short_lived(std::string_view path) noexcept {
  constexpr std::string_view kFolders[] = {"/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/memfd:", "/proc/"};
  for (const std::string_view folder : kFolders)
    if (path.starts_with(folder)) return true;
  struct stat info {};
  PathText name;
  name << path;
  return raw::status_of_path(name.c_str(), info) != 0;
}

}  // namespace

void NativeStack::capture(bool name_kernel) noexcept {
  const ErrnoKeeper keeper;
  count_ = 0;
  names_used_ = 0;
  Addresses addresses;
  constexpr std::string_view kHostStub = "__device_stub__";
  int look_ups = name_kernel ? 8 : 0;  // each goes through a table of symbols
  guarded_walk(unwind, &addresses);    // what was found before it was given up counts
  for (std::size_t i = 0; i < addresses.count; ++i) {
    const std::uintptr_t address = addresses.rows[i];
    report::FrameRow& row = rows_[count_];
    // The byte before: a call at a function's very end returns to the next function.
    const LoadedObject object = find_loaded_object(address - 1);
    row = {};
    row.offset = address;
    const bool wanted = look_ups > 0;
    if (object) {
      build_ids_[count_] = to_hex(object.build_id.view());
      row.object = object.path;
      if (!build_ids_[count_].empty()) row.build_id = build_ids_[count_].view();
      row.offset = object.offset_of(address);
      char* const name = names_ + names_used_;
      if ((wanted || is_short_lived(object.path)) &&
          object.elf.symbol_at(address - 1, name, sizeof names_ - names_used_)) {
        row.symbol = name;
        names_used_ += row.symbol.size() + 1;
      }
      if (wanted) --look_ups;
      if (row.symbol.find(kHostStub) != std::string_view::npos) look_ups = 0;
    }
    ++count_;
  }
}

}  // namespace kshim::shim
