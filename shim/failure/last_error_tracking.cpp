// SPDX-License-Identifier: Apache-2.0
#include "failure/last_error_tracking.h"

#include <span>

#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/scratch_stack.h"
#include "guest/seen_keys.h"
#include "guest/timed_lock.h"
#include "kshim/base/hash.h"
#include "process/loaded_objects.h"
#include "process/python/frames.h"
#include "process/stack/native.h"
#include "report/report_file.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

/// The error that the runtime keeps for this thread, as far as the shim saw it come.
struct Left {
  abi::Result code = 0;
  std::uint32_t report = 0;
  std::uint64_t failure = 0;
  std::uint32_t owner = 0;
};
constinit thread_local Left t_left;

SeenKeys<2048> g_written;

PatientLock g_lock;  // guards the stacks
constinit NativeStack g_native;
constinit PythonStack g_python;

bool is_first(const Left& left, std::uint32_t reader) noexcept {
  const std::uint64_t parts[] = {left.report, left.failure, reader};
  return g_written.is_first(key_hash(std::as_bytes(std::span(parts))));
}

void write(const Left& left, Hook hook, std::uint32_t reader, bool foreign) noexcept {
  announce_object(reader, {});
  const LockGuard guard(g_lock);
  if (!guard) {
    count_dropped();
    return;
  }
  g_native.clear();
  g_python.clear();
  // Whoever asks about his own call is told by the failure's stacks.
  if (foreign && options().native_stacks) g_native.capture();
  if (foreign && options().python_stacks) g_python.capture_this_thread();
  write_record<RecordType::read>([&](auto& record) {
    record.template add<Field::read_failure>(left.failure);
    record.template add<Field::read_api>(row_of(hook).name);
    record.template add<Field::read_code>(static_cast<std::uint64_t>(left.code));
    record.template add<Field::read_object>(reader == 0 ? Maybe() : Maybe(reader));
    if (g_native.rows().empty())
      record.template null<Field::read_native>();
    else
      record.template add<Field::read_native>(g_native.rows());
    if (g_python.rows().empty())
      record.template null<Field::read_python>();
    else
      record.template add<Field::read_python>(g_python.rows());
  });
}

}  // namespace

void leave_error(abi::Result code, std::uint64_t failure, std::uint32_t report,
                 std::uint32_t owner) noexcept {
  t_left = {code, report, failure, owner};
}

void note_read(Hook hook, abi::Result code, const void* caller) noexcept {
  const Left left = t_left;
  if (left.code != code) return;  // of a call that is not hooked
  // Asking clears it, peeking does not.
  if (hook == Hook::cudaGetLastError) t_left.code = 0;
  if (left.report != current_report() || left.report == 0) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  if (!busy) return;
  const std::uint32_t reader = find_loaded_object(caller).identity;
  const auto tell = [&] { write(left, hook, reader, reader != left.owner); };
  if (is_first(left, reader) && !with_room(tell)) count_dropped();
}

}  // namespace kshim::shim
