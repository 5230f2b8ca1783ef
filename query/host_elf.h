// SPDX-License-Identifier: Apache-2.0
// A host ELF file: which of its ranges hold fatbins, and, for relocatable device code, which parts belong to
// which module.
#pragma once
#include "query/device_code.h"

namespace kshim::query {

Reason find_in_elf(SourceFile& file, DeviceCode& out) noexcept;

}  // namespace kshim::query
