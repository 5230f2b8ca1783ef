// SPDX-License-Identifier: Apache-2.0
// Files whose calls to CUDA did not come through the shim although it is in the process: loaded with
// RTLD_DEEPBIND, which puts a library's own dependencies before every preload, or into a namespace of their
// own (dlmopen), where there is no preload. What such files did cannot be recorded; that they were there can.
#pragma once

namespace kshim::shim {

/// One `bypass` record for each such file that is still mapped, in a report that is begun for it where there
/// is none. For the end of a process through its destructors. Without CUDA it is one look at the names of
/// what is mapped.
void announce_bypasses() noexcept;

}  // namespace kshim::shim
