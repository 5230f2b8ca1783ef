// SPDX-License-Identifier: Apache-2.0
// The machine that kshim doctor looks at: a tree of files and an environment. The tree may be another one
// than our own (--root: a container's, a mounted disk, a test's), so symbolic links are followed inside of
// it.
#pragma once

#include "analyzer/core/text.h"

namespace kshim::input {

class Machine {
 public:
  /// `root` "/" is this machine itself.
  Machine(std::filesystem::path root, std::map<std::string, std::string> environment);

  /// Whether it is this machine, whose devices and driver can be asked.
  bool live() const noexcept { return live_; }
  /// Empty when it is not set.
  std::string_view env(std::string_view name) const;
  bool has_env(std::string_view name) const;

  // Paths are absolute ones of the machine, "/usr/lib".
  /// Without links; empty when it does not exist.
  std::string real(std::string_view path) const;
  /// Where to open it from here; empty when it does not exist.
  std::filesystem::path at(std::string_view path) const;
  bool exists(std::string_view path) const { return !real(path).empty(); }
  bool is_folder(std::string_view path) const;
  bool is_file(std::string_view path) const;
  bool is_executable(std::string_view path) const;
  /// The first MiB of it.
  std::string read(std::string_view path, std::size_t most = std::size_t{1} << 20U) const;
  /// Names in a folder, sorted; no more than a few thousand.
  std::vector<std::string> names(std::string_view folder) const;

 private:
  std::filesystem::path root_;
  std::map<std::string, std::string> environment_;
  bool live_;
};

/// This machine with our environment; LD_LIBRARY_PATH with absolute paths, as ld.so takes them.
Machine this_machine();
/// The environment of this process.
std::map<std::string, std::string> own_environment();
/// Folder and name, with one slash between them.
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace kshim::input
