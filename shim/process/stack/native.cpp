// SPDX-License-Identifier: Apache-2.0
#include "process/stack/native.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

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
  bool handler = false;  ///< one of the frames is the kernel's, below a signal handler
};

/// Whether words on a stack can be read. Words of a page that was read before can.
class StackPages {
 public:
  bool can_read(std::uintptr_t address) noexcept {
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t first = address / kPage;
    const std::uintptr_t last = (address + sizeof(std::uintptr_t) - 1) / kPage;
    if (first == page_ && last == page_) return true;
    std::uintptr_t word = 0;
    if (!read_memory(address, &word, sizeof word)) return false;
    page_ = last;
    return true;
  }

 private:
  std::uintptr_t page_ = 0;
};

// A stack pointer that does not grow means that a frame was misread (hand-written assembly, JIT code): going
// on from there could touch memory that is not there.
void unwind(void* context_of_walk) noexcept {
  auto& out = *static_cast<Addresses*>(context_of_walk);
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != UNW_ESUCCESS || unw_init_local(&cursor, &context) != UNW_ESUCCESS) return;
  StackPages pages;
  unw_word_t last_stack = 0;
  bool outside = false;
  while (out.count < NativeStack::kMaxFrames && unw_step(&cursor) > 0) {
    unw_word_t address = 0;
    unw_word_t stack = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != UNW_ESUCCESS || address == 0) return;
    if (unw_get_reg(&cursor, UNW_REG_SP, &stack) != UNW_ESUCCESS) return;
    // The shim's frames may be on two stacks (scratch_stack.h); the host's are on one.
    if (stack <= last_stack && !(is_shim(address) || is_on_own_stack(last_stack))) return;
    if (!pages.can_read(stack)) return;
    out.handler = out.handler || unw_is_signal_frame(&cursor) > 0;
    last_stack = stack;
    outside = outside || !is_shim(address);
    if (outside) out.rows[out.count++] = address;
  }
}

/// Whether the file may be deleted or replaced by the time that the report is read.
bool is_short_lived(std::string_view path) noexcept {
  constexpr std::string_view kFolders[] = {"/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/memfd:", "/proc/"};
  for (const std::string_view folder : kFolders)
    if (path.starts_with(folder)) return true;
  struct stat info {};
  PathText name;
  name << path;
  return raw::status_of_path(name.c_str(), info) != 0;
}

/// The frames of one file, for a look-up of their functions.
struct FileFrames {
  std::size_t rows[NativeStack::kMaxFrames];
  LoadedElf::Function functions[NativeStack::kMaxFrames];
  std::size_t count = 0;
};

}  // namespace

/// Names the frames from `first` on that lie in the same file, all in one pass over its symbols.
void NativeStack::name_frames(std::size_t first, std::size_t kernel_frames, std::size_t& reads) noexcept {
  const std::string_view path = rows_[first].object;
  const bool short_lived = is_short_lived(path);
  FileFrames frames;
  for (std::size_t i = first; i < count_; ++i) {
    if (rows_[i].object.data() != path.data() || !(short_lived || i < kernel_frames)) continue;
    frames.rows[frames.count] = i;
    // The byte before: a call at a function's very end returns to the next function.
    frames.functions[frames.count++].address = addresses_[i] - 1;
  }
  if (frames.count == 0) return;
  const LoadedObject object = find_object_in_use(addresses_[first] - 1);
  if (!object) return;
  const ScopedManyReads many;
  object.elf.find_functions(frames.functions, frames.count, reads);
  for (std::size_t i = 0; i < frames.count; ++i) {
    char* const name = names_ + names_used_;
    if (!object.elf.copy_name(frames.functions[i], name, sizeof names_ - names_used_)) continue;
    rows_[frames.rows[i]].symbol = name;
    names_used_ += rows_[frames.rows[i]].symbol.size() + 1;
  }
}

bool is_in_signal_handler() noexcept {
  Addresses found;
  guarded_walk(unwind, &found);
  return found.handler;
}

void NativeStack::capture(bool name_kernel) noexcept {
  names_used_ = 0;
  Addresses found;
  guarded_walk(unwind, &found);  // frames found before it failed count
  count_ = found.count;
  for (std::size_t i = 0; i < count_; ++i) {
    addresses_[i] = found.rows[i];
    const LoadedObject object = find_object_in_use(addresses_[i] - 1);
    report::FrameRow& row = rows_[i];
    row = {};
    row.offset = addresses_[i];
    if (!object) continue;
    build_ids_[i] = to_hex(object.build_id.view());
    row.object = object.path;
    if (!build_ids_[i].empty()) row.build_id = build_ids_[i].view();
    row.offset = object.offset_of(addresses_[i]);
  }
  constexpr std::size_t kKernelFrames = 8;
  std::size_t reads = 256;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::string_view path = rows_[i].object;
    bool first = !path.empty();
    for (std::size_t k = 0; first && k < i; ++k) first = rows_[k].object.data() != path.data();
    if (first) name_frames(i, name_kernel ? kKernelFrames : 0, reads);
  }
}

}  // namespace kshim::shim
