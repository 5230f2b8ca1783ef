// SPDX-License-Identifier: Apache-2.0
// Where code stands in the source: kernels and host functions.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/image/image.h"

namespace kshim::device_code {

// Where kernels stand in the source, as images compiled with -lineinfo or -G tell.

struct SourceLine {
  std::string file;  ///< as the compiler wrote it: mostly absolute; empty where it is not known
  unsigned line = 0;
};

/// By mangled name; empty for an image without line information, damaged entries left out. `clear`: not
/// compressed.
std::map<std::string, SourceLine> kernel_lines(image::ImageKind kind, Bytes clear);

// Where the machine code of a host file comes from in the source, as its DWARF tells (gcc -g), functions that
// were inlined there included. Read by elfutils' libdw in a process of its own with limits on time and
// memory: what a damaged or made-up file does to the library, it does to that process.

/// One function at an address.
struct SourceFrame {
  SourceLine at;
  std::string function;  ///< mangled where the file has it so; may be empty
};
/// Innermost first: what was inlined, then what it was inlined into.
using SourceFrames = std::vector<SourceFrame>;

struct HostFile {
  std::filesystem::path path;
  std::string build_id;              ///< lower-case hex; may be empty
  std::filesystem::path root = "/";  ///< has usr/lib/debug/.build-id, with debug files of stripped ones
};

/// For each link-time address what is there; empty where nothing is known, and for all of them where the file
/// cannot be read in time.
std::vector<SourceFrames> host_lines(const HostFile& file, const std::vector<std::uint64_t>& addresses);
/// Whether a debug file of this build id is installed.
bool has_debug_file(const HostFile& file);
/// Where it would be; empty for a build id that is none.
std::filesystem::path debug_file(const HostFile& file);

// The part of this that runs in a process of its own.

/// Not for the process of the analysis: libdw trusts more of a file than it should.
std::vector<SourceFrames> read_dwarf(const HostFile& file, const std::vector<std::uint64_t>& addresses);

}  // namespace kshim::device_code
