// SPDX-License-Identifier: Apache-2.0
// A text of kshim-knowledge/1: every row and field is checked before anything changes.
#pragma once
#include "analyzer/data/knowledge_file.h"
#include "kshim/image/compute_capability.h"

namespace kshim::data {

inline constexpr std::size_t kMaxKnowledgeBytes = std::size_t{8} << 20;

/// The tables of the image library that a text brings.
struct ImageTables {
  std::vector<image::ComputeCapabilityInfo> gpus;
  std::vector<image::FamilyRow> families;
  std::vector<image::PtxTargetRow> targets;
  std::vector<image::PtxIsaRow> isas;
};

class KnowledgeText {
 public:
  /// Reads the rows at once, or when their table is asked for: the command needs few tables of many.
  enum class Rows : bool { now, when_asked };
  /// Throws std::runtime_error that names file, row and field of what is wrong; so do the others.
  KnowledgeText(std::string_view json, std::string file, Rows rows = Rows::now);
  ~KnowledgeText();
  const std::string& date() const { return date_; }
  bool has(std::string_view table) const;
  /// Puts a table in the place of the one that is there, once.
  void use(std::string_view table, Knowledge& to);
  /// Puts all of them there, once; image::select_image judges by them, too.
  void use(Knowledge& to);

 private:
  struct Parsed;
  void read(std::string_view table);
  std::string file_;
  std::string date_;
  std::unique_ptr<Parsed> parsed_;
  Knowledge rows_;
  ImageTables images_;
};

}  // namespace kshim::data
