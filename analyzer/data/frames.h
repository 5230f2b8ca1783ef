// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of a stack is: the table frames.def and its look-up.
#pragma once
#include <span>
#include <string_view>

namespace kshim::analysis {

enum class FrameOwner : unsigned char { user, library, generated, launcher, plumbing };
enum class FrameMatch : unsigned char {
  begins,
  holds,
  script,
  file_begins,
  path_begins,
  path_holds,
  symbol_begins,
  symbol_holds,
  source_holds,
};
struct FrameRow {
  FrameMatch match;
  std::string_view text;
  FrameOwner owner;
  std::string_view sources;
};
std::span<const FrameRow> python_frames();
std::span<const FrameRow> native_frames();

/// Of a Python frame, by its file and function.
FrameOwner owner_of_python(std::string_view file, std::string_view function);
/// Of a file with machine code.
FrameOwner owner_of_object(std::string_view path);
/// Whether it lies in a folder of the system or of the toolkit.
bool is_system_path(std::string_view path);
/// Of a function in it, by its mangled name, which may be empty.
FrameOwner owner_of_symbol(std::string_view symbol);
/// Of a source file that debug information names.
FrameOwner owner_of_source(std::string_view file);

}  // namespace kshim::analysis
