// SPDX-License-Identifier: Apache-2.0
// A text of kshim-knowledge/1: every row and field is checked before anything changes.
#pragma once
#include "analyzer/data/knowledge_file.h"
#include "kshim/image/compute_capability.h"

namespace kshim::data {

inline constexpr std::size_t kMaxKnowledgeBytes = std::size_t{8} << 20;

enum class ImageLibrary : bool { takes_it, has_it };
/// The tables of the image library that a text brings.
struct ImageTables {
  std::vector<image::ComputeCapabilityInfo> gpus;
  std::vector<image::FamilyRow> families;
  std::vector<image::PtxTargetRow> targets;
  std::vector<image::PtxIsaRow> isas;
};

class KnowledgeText {
 public:
  /// Throws std::runtime_error that names file, row and field of what is wrong.
  KnowledgeText(std::string_view json, const std::string& file);
  const std::string& date() const { return date_; }
  /// Puts its tables in the place of those that are there, once; image::select_image judges by them, too.
  void use(Knowledge& to, ImageLibrary images = ImageLibrary::takes_it);

 private:
  bool has(std::string_view name) const { return std::ranges::find(sections_, name) != sections_.end(); }
  std::string date_;
  std::vector<std::string_view> sections_;
  Knowledge rows_;
  ImageTables images_;
};

}  // namespace kshim::data
