// SPDX-License-Identifier: Apache-2.0
#include "process/stack/native.h"

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

/// Frames that were found before a walk failed count.
void unwind(Addresses& out) noexcept {
  bool outside = false;
  walk_stack([&](const Frame& frame) {
    out.handler = out.handler || frame.is_handlers;
    outside = outside || !is_shim(frame.address);
    if (outside) out.rows[out.count++] = frame.address;
    return out.count < NativeStack::kMaxFrames;
  });
}

/// Whether the file may be deleted or replaced by the time that the report is read, by its path: looking at
/// the file would wait for its server.
bool is_short_lived(std::string_view path) noexcept {
  constexpr std::string_view kFolders[] = {"/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/memfd:", "/proc/"};
  for (const std::string_view folder : kFolders)
    if (path.starts_with(folder)) return true;
  return false;
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
  unwind(found);
  return found.handler;
}

void NativeStack::capture(bool name_kernel) noexcept {
  names_used_ = 0;
  Addresses found;
  unwind(found);
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
