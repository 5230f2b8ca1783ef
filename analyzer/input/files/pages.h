// SPDX-License-Identifier: Apache-2.0
// Pages of mapped files, which fill memory once they were read.
#pragma once
#include "kshim/base/bytes.h"

namespace kshim::scan {

/// Whether `part` is of `file`, and not of what was inflated.
bool is_of(Bytes file, Bytes part);
/// A mapped file's pages between the ends of `passed` go. They can be read again.
void let_go(Bytes passed);

}  // namespace kshim::scan
