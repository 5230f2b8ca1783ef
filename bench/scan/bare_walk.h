// SPDX-License-Identifier: Apache-2.0
// What scan_bench measures against: the least that any program has to do to count a library's images. It
// believes every header.
#pragma once
#include <cstddef>
#include <cstdint>

struct BareCount {
  std::uint64_t fatbins = 0;
  std::uint64_t images = 0;
  std::uint64_t searched = 0;
};
/// An ELF file in memory: headers hopped in .nv_fatbin and __nv_relfatbin, memmem() in other read-only and
/// writable data.
BareCount bare_walk(const char* file, std::size_t size);
