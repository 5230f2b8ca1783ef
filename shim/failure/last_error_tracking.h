// SPDX-License-Identifier: Apache-2.0
// The runtime keeps a thread's last error until the program asks for it (cudaGetLastError,
// cudaPeekAtLastError). The code that asks may be other code than the one that failed: a library probes, goes
// on and leaves its error behind, and unrelated code reports it. A `read` record names the code that read the
// error of a failure, once for each reader. Without such a record the error was never read.
#pragma once
#include <cstdint>

#include "cuda/cuda_abi.h"
#include "cuda/hooks.h"
#include "guest/insert_only_set.h"
#include "process/python/frames.h"
#include "process/stack/native.h"
#include "track/object_records.h"

namespace kshim::shim {

/// The error that the runtime keeps for this thread, as far as the shim knows.
struct LastError {
  abi::Result code = 0;
  std::uint32_t report = 0;
  std::uint64_t failure = 0;
  std::uint32_t owner = 0;  ///< identity of the file whose code it was about
};

/// A runtime call of this thread has failed.
void set_last_error(const LastError& error) noexcept;
/// The program asked and got `code`. False where that is not the error of a failure in the present report.
/// Needs no lock.
bool match_last_error(Hook hook, abi::Result code, LastError& out) noexcept;

/// Lies in zeroed memory.
class ErrorReads {
 public:
  void add(const LastError& error, Hook hook, const void* caller, Report& report,
           ObjectRecords& objects) noexcept;

 private:
  InsertOnlySet<2048> written_;
  NativeStack native_;
  PythonStack python_;
};

}  // namespace kshim::shim
