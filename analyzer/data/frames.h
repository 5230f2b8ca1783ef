// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of a stack is: a look-up in the tables python_frames and native_frames.
#pragma once

#include "analyzer/data/tables.h"

namespace kshim::data {

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

}  // namespace kshim::data
