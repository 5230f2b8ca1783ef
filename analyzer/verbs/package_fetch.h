// SPDX-License-Identifier: Apache-2.0
// The wheel that pip would install, to look at: fetched by the environment's own pip, with its index
// settings.
#pragma once

#include "analyzer/core/temporary_folder.h"

namespace kshim::verbs {

/// Whether `word` is "NAME[extra]" or "NAME==VERSION" as pip reads it, or the name of a project that the
/// tables know, and names no file. `asked`: an option says that packages are meant, so any name is one.
bool is_requirement(const std::string& word, bool asked);

struct FetchRequest {
  std::string requirement;
  std::string interpreter;      ///< whose pip is asked
  std::string uv = {};          ///< asked instead, where that Python has no pip
  std::string python;           ///< "3.12"; empty = the interpreter's own
  std::string platform;         ///< "manylinux_2_28_x86_64"; empty = this machine's
  std::uint64_t max_bytes = 0;  ///< 0 = any
  /// Called with the bytes fetched so far.
  std::function<void(std::uint64_t)> progress = {};
};

bool has_pip(const std::string& interpreter);

/// What was fetched.
struct Fetched {
  std::string name;  ///< of the wheel in the folder; of uv, of what it unpacked there
  std::vector<std::string>
      companions;  ///< packages with kernels that it needs: "nvidia-cublas-cu12==12.8.4.1"
};
/// UserError where pip finds none, refuses, or has fetched too much; pip's own messages go to stderr.
Fetched fetch_wheel(const FetchRequest& request, const core::TemporaryFolder& folder);

}  // namespace kshim::verbs
