// SPDX-License-Identifier: Apache-2.0
// KSHIM_TARGET: a static runtime registers its fatbins out of sight, and loads each only when it is needed.
// So that a target's gaps do not depend on what a run happened to use, every mapped file's fatbins are looked
// through.
#pragma once

namespace kshim::shim {

/// Gaps for the targets in the files mapped since the last call. Nothing without KSHIM_TARGET.
void survey_targets() noexcept;

}  // namespace kshim::shim
