// SPDX-License-Identifier: Apache-2.0
// What takes the bytes of a scan: by architecture, module and kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/verbs/scan.h"

namespace kshim::scan {

struct SizeRow {
  std::string name;          ///< "sm_90a"; a file with the offset of a module in it; a kernel, demangled
  std::uint64_t bytes = 0;   ///< as stored in the file; of a kernel its machine code
  std::uint64_t clear = 0;   ///< uncompressed; 0 where that says nothing
  std::uint64_t images = 0;  ///< of a kernel: architectures
  std::string more = {};     ///< of a module: its first kernel
};
struct SizeTable {
  const char* what;                ///< "architecture", "module", "kernel"
  std::vector<SizeRow> rows = {};  ///< the largest first
  std::uint64_t total = 0;         ///< of `bytes`, those of rows that are left out too
};
/// The tables that have rows, each with `most` rows at most but the first, which has all.
std::vector<SizeTable> size_tables(const Scan& scan, std::size_t most);
/// "12 %"
std::string share_text(std::uint64_t part, std::uint64_t all);

}  // namespace kshim::scan
