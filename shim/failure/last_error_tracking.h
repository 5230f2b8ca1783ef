// SPDX-License-Identifier: Apache-2.0
// The runtime keeps a thread's last error until somebody asks for it (cudaGetLastError, cudaPeekAtLastError).
// Who asks need not be who failed: a library probes, goes on and leaves its error behind, and innocent code
// reports it. Who asked for the error of a failure is written once a reader; that nobody asked is a fact,
// too.
#pragma once
#include <cstdint>

#include "cuda/cuda_abi.h"
#include "cuda/hooks.h"

namespace kshim::shim {

/// A runtime call of this thread has failed, and its failure has this number in the present report. `owner`:
/// identity of the file whose code it was about. The thread is Busy.
void leave_error(abi::Result code, std::uint64_t failure, std::uint32_t report, std::uint32_t owner) noexcept;
/// Somebody asked and got `code`. errno is kept.
void note_read(Hook hook, abi::Result code, const void* caller) noexcept;

}  // namespace kshim::shim
