// SPDX-License-Identifier: Apache-2.0
// The facts of a line that tell of no failure: GPU, driver, toolkit, what files hold, packages, the user's
// frames.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/explain/clues.h"
#include "analyzer/explain/patterns.h"

namespace kshim::explain {

class FactReader {
 public:
  /// Its patterns are added to `patterns`, which must be compiled before take() is called, as `clues` must
  /// live.
  FactReader(PatternSet& patterns, Clues& clues);

  /// Whether the pattern is one of this reader's.
  bool owns(int pattern) const { return pattern >= first_ && pattern < end_; }
  void take(int pattern, const std::string& text);
  /// What a failing line says by the named groups of its row (messages.def).
  void take_groups(const std::map<std::string, std::string>& groups);
  /// The Python traceback as it stands.
  const std::vector<analysis::Place>& traceback() const { return traceback_; }

 private:
  void add_device(std::optional<image::ComputeCapability> cc, std::string name = {});
  void add_image(image::ImageKind kind, std::string_view arch, const std::string& owner, bool by_itself);
  void add_words(const std::string& words, const std::string& owner);
  void add_numbers(const std::string& words, image::ImageKind kind, const std::string& owner,
                   bool hundredfold);
  void add_package(const std::string& text);
  void add_frame(const std::vector<std::string>& groups);
  void add_env(const std::string& fact);
  void set_tag(const std::string& digits);
  void set_module(const std::string& fact);
  void set_driver(image::Version version);
  void set_toolkit(image::Version version);

  const PatternSet& patterns_;
  Clues& clues_;
  int first_ = 0;
  int gpu_name_ = 0;
  int end_ = 0;
  std::string file_;  ///< heading of the images that follow
  std::vector<analysis::Place> traceback_;
};

}  // namespace kshim::explain
