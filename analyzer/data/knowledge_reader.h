// SPDX-License-Identifier: Apache-2.0
// A text of kshim-knowledge/1: every row and field is checked before anything changes.
#pragma once
#include <cstddef>

#include "analyzer/data/knowledge_file.h"

namespace kshim::analysis {

inline constexpr std::size_t kMaxKnowledgeBytes = std::size_t{8} << 20;

enum class ImageLibrary : bool { takes_it, has_it };

class KnowledgeText {
 public:
  /// Throws std::runtime_error that names file, row and field of what is wrong.
  KnowledgeText(std::string_view json, const std::string& file);
  ~KnowledgeText();
  const std::string& date() const;
  /// Puts its tables in the place of those that are there, once; image::select_image judges by them, too.
  void use(Knowledge& to, ImageLibrary images = ImageLibrary::takes_it);

 private:
  class Rows;
  std::unique_ptr<Rows> rows_;
};

}  // namespace kshim::analysis
