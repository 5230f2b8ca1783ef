// SPDX-License-Identifier: Apache-2.0
// Which files there are behind the paths of a command line.
#pragma once

#include "analyzer/core/prelude.h"
#include "analyzer/input/files/container_buffer.h"
#include "analyzer/input/files/file_kind.h"

namespace kshim::input {

struct Input {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  bool named = false;         ///< by the user, not found in a folder
  bool image_folder = false;  ///< the path is a folder that holds images of containers
  std::string name = {};      ///< where the path is not what the user called it: "-"
  std::string shown() const { return name.empty() ? path.string() : name; }
};

/// What cannot be looked at, or not whole, and why.
struct ReadNote {
  std::string place;  ///< a path, or path!member
  std::string what;   ///< a clause
  std::string text() const { return place + ": " + what; }
};

struct Inputs {
  std::vector<Input> files;  ///< each file once, by its own name where links lead to it too
  std::uint64_t duplicates = 0;
  std::vector<ReadNote> notes;    ///< folders and files that cannot be looked at
  std::vector<UnnamedFile> kept;  ///< what paths of `files` lead to
};

/// "-" is standard input, which is kept in a file without a name. Folders are walked, links to folders inside
/// them are not followed, links to files are.
Inputs list_inputs(const std::vector<std::filesystem::path>& paths);

/// The first bytes of a file; fewer where it is shorter, none where it cannot be read, with the reason in
/// `note`.
Bytes read_first(const std::filesystem::path& path, std::array<std::byte, kFirstBytes>& buffer,
                 std::string& note);

}  // namespace kshim::input
