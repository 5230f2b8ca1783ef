// SPDX-License-Identifier: Apache-2.0
#include "failure/last_error_tracking.h"

#include <optional>
#include <span>

#include "guest/options.h"
#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

constinit thread_local LastError t_last;

}  // namespace

void set_last_error(const LastError& error) noexcept { t_last = error; }

bool match_last_error(Hook hook, abi::Result code, LastError& out) noexcept {
  if (t_last.code != code) return false;  // an error of a call that is not hooked
  out = t_last;
  // cudaGetLastError clears the error, cudaPeekAtLastError does not.
  if (hook == Hook::cudaGetLastError) t_last.code = 0;
  return out.report != 0 && out.report == current_report();
}

void ErrorReads::add(const LastError& error, Hook hook, const void* caller, Report& report,
                     ObjectRecords& objects) noexcept {
  const std::uint32_t reader = find_object_in_use(caller).identity;
  const std::uint64_t parts[] = {error.report, error.failure, reader};
  if (!written_.is_first(key_hash(std::as_bytes(std::span(parts))))) return;
  objects.announce(report, reader, {});
  native_.clear();
  python_.clear();
  // If the code that failed reads the error itself, the failure's stacks are enough.
  const bool foreign = reader != error.owner;
  if (foreign && options().native_stacks) native_.capture();
  if (foreign && options().python_stacks) python_.capture_this_thread();
  report.write<RecordType::read>([&](auto& record) {
    record.template add<Field::read_failure>(error.failure);
    record.template add<Field::read_api>(row_of(hook).name);
    record.template add<Field::read_code>(static_cast<std::uint64_t>(error.code));
    record.template add<Field::read_object>(reader == 0 ? Maybe() : Maybe(reader));
    if (native_.rows().empty())
      record.template null<Field::read_native>();
    else
      record.template add<Field::read_native>(native_.rows());
    if (python_.rows().empty())
      record.template null<Field::read_python>();
    else
      record.template add<Field::read_python>(python_.rows());
  });
}

}  // namespace kshim::shim
