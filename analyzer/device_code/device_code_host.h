// SPDX-License-Identifier: Apache-2.0
// Which ranges of a host file may hold fatbins, and which hold the wrappers that point at them.
#pragma once
#include "analyzer/device_code/device_code.h"

namespace kshim::analysis {

/// An ELF file, with as much of its headers as is there and makes sense.
void find_in_elf(Bytes file, DeviceCode& out);
/// false: not a PE file.
bool find_in_pe(Bytes file, DeviceCode& out);

}  // namespace kshim::analysis
