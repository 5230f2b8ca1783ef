// SPDX-License-Identifier: Apache-2.0
// Facts from lines that do not report a failure: GPU, driver, toolkit, what files hold, packages, the user's
// frames.
#pragma once
#include "analyzer/data/tables.h"
#include "analyzer/input/log/clues.h"
#include "analyzer/input/log/pattern_set.h"

namespace kshim::input {

/// Where the patterns of a FactReader are among the others.
struct FactPatterns {
  int first = 0;  ///< names of GPUs, so that they stand in the order of the text
  int first_clue = 0;
  int first_software = 0;
  int end = 0;
  explicit FactPatterns(PatternSet& patterns);  ///< adds them
  bool has(int pattern) const { return pattern >= first && pattern < end; }
  bool is_software(int pattern) const { return pattern >= first_software && pattern < end; }
  /// What says something of the packages of its line is taken after them.
  bool is_late(int pattern) const;
};

/// "2.1" of "2.1.0+cu121"; unknown = {0, 0}.
image::Version leading_version(std::string_view text);
/// "8.6", "sm_86": nullopt for what no GPU has.
std::optional<image::ComputeCapability> known_cc(std::string_view text);
/// The same of what programs write: "75", "7, 5", "750" too.
std::optional<image::ComputeCapability> capability_in(std::string text);
/// Whether a capability between these words is one that something asks for, and no GPU's own.
bool is_requirement(std::string_view before, std::string_view after);
/// Whether a version behind a package's name is that of the CUDA that built it: "compile PyTorch (11.8)".
bool is_toolkit_of_build(std::string_view before, std::string_view whole, image::Version version);

class FactReader {
 public:
  /// All must live as long as the reader; `patterns` is compiled.
  FactReader(const PatternSet& patterns, const FactPatterns& own, LogFacts& clues)
      : patterns_(patterns), own_(own), clues_(clues) {}

  void take(int pattern, const std::string& text);
  /// What a failing line says by the named groups of its row (the table messages).
  void take_groups(const std::map<std::string, std::string>& groups);
  /// Packages that the line at hand names.
  const std::vector<std::string>& software() const { return software_; }
  /// What the line before asked for may be what this one answers (the table answers).
  void begin_line(const std::string& text);
  /// What the line says of the packages that it names.
  void end_line(const std::string& text);
  /// The Python traceback as it stands.
  const std::vector<core::Place>& traceback() const { return traceback_; }
  /// Whether a line is the source that Python prints below a frame: the words of code are no message.
  bool is_source(const std::string& text) const;
  void set_speaker(std::string name) { speaker_ = std::move(name); }
  const std::string& speaker() const { return speaker_; }
  /// Whether the last frame's line of source calls a compiled module: "_C.rasterize(", "lmc_ops.transfer(".
  bool calls_native() const { return native_; }

 private:
  void take_answer(int row, const std::string& fact);
  void take_clue(const data::ClueRow& row, int index, const std::string& fact, const std::string& text);
  std::string fact_there(int pattern, const std::string& text) const;
  void add_device(std::optional<image::ComputeCapability> cc, std::string name = {},
                  DeviceRole role = DeviceRole::none, std::optional<int> ordinal = std::nullopt);
  void add_named_devices(const std::string& text);
  void add_image(image::ImageKind kind, std::string_view arch, const std::string& owner, bool by_itself);
  std::string owner_of_list(const std::string& text) const;
  void add_words(const std::string& words, const std::string& owner);
  void add_numbers(const std::string& words, image::ImageKind kind, const std::string& owner,
                   bool hundredfold);
  void add_software(int pattern, const std::string& text);
  void note_package(const PackageMention& package);
  void add_option(const std::vector<std::string>& groups);
  void add_frame(const std::vector<std::string>& groups);
  void add_env(const std::string& fact);
  void note_installed(int pattern, const std::string& text);
  void note_there(int pattern, const std::string& text);
  void note_build(data::ClueKind kind, const std::string& text);
  void note_program(data::ClueKind by, std::string name);
  void note_works(int pattern, const std::string& name, const std::string& text);
  void note_tried(const data::ClueRow& row, const std::string& text);
  void note_solution(const std::string& text);
  void add_number(int pattern, const std::string& text);
  void set_memory(const std::string& text);
  void set_tag(const std::string& digits);
  void set_module(std::string fact);
  void set_driver(image::Version version);
  void set_toolkit(image::Version version);
  void say_toolkit(image::Version version, std::string_view text);

  const PatternSet& patterns_;
  const FactPatterns& own_;
  LogFacts& clues_;
  std::string file_;    ///< heading of the images that follow
  std::string listed_;  ///< the folder whose files a command before lists
  std::string major_;   ///< of a compute capability whose minor number follows
  std::vector<std::string> software_;
  std::vector<core::Place> traceback_;
  std::string before_frame_;  ///< what stood before `File "...", line N` in the last frame's line
  std::uint64_t frame_line_ = 0;
  std::uint64_t module_line_ = 0;
  bool driver_by_module_ = false;  ///< no program printed the CUDA version that it serves
  std::string speaker_;
  bool native_ = false;
  bool failed_ = false;       ///< a line before this one tells of a failure: what it ran with is named
  bool lists_tries_ = false;  ///< below "What I tried:"
  std::vector<PackageMention> line_packages_;
  int asked_ = -1;  ///< row of the table answers whose question stood in the line before
};

}  // namespace kshim::input
