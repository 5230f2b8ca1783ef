// SPDX-License-Identifier: Apache-2.0
// Formats that other programs read: SARIF, JUnit and GitHub's workflow commands.
#pragma once

#include "analyzer/core/finding.h"

namespace kshim::render {

/// Where programs (SARIF viewers, GitHub) should show a finding: the checkout that CI servers look for files
/// in. What lies in it is named from there, as it is called on any machine.
class SourceRoot {
 public:
  /// `root`: the folder, absolute; none where it is empty or `/`. `names`: other paths of it, through links.
  /// `working`: the folder that relative paths start in, absolute; may be empty.
  SourceRoot(std::string root, std::vector<std::string> names, std::string working);
  /// $GITHUB_WORKSPACE, else the working folder.
  static SourceRoot of_process();

  struct Named {
    std::string path;
    bool inside = false;  ///< `path` is relative to the root
  };
  /// A relative path outside of the root becomes absolute, where the working folder is known.
  Named name(std::string_view path) const;
  const std::string& folder() const { return root_; }  ///< without the last slash; empty for none

 private:
  std::string root_;
  std::vector<std::string> names_;  ///< root_ first
  std::string working_;
};

struct FilePlace {
  std::string file;  ///< as found, not made harmless; empty where none is known
  unsigned line = 0;
  std::string member;  ///< inside `file` where that is an archive
};

struct PlacedFinding {
  core::Finding finding;
  FilePlace place;
};

/// The innermost line of the checkout, else the user's own line wherever it is, else the file with the device
/// code, else the line of the report.
FilePlace place_of(const core::Finding& finding, const SourceRoot& root);
/// With place_of() each, and with `otherwise` where there is none: what has no place is shown nowhere. The
/// order is kept.
std::vector<PlacedFinding> placed(const std::vector<core::Finding>& findings, const SourceRoot& root,
                                  const std::string& otherwise);
/// At most that many bytes, cut between characters, with an ellipsis where something is gone.
std::string clipped(std::string text, std::size_t bytes);

/// SARIF 2.1.0, for code scanning: the rules are the causes.
struct SarifRun {
  std::string id;  ///< what tells runs of one tool apart: "kshim-scan/"
  std::vector<PlacedFinding> findings = {};
  std::vector<std::string> notes = {};
  std::vector<std::string> failures = {};  ///< why the tool could not look: the run was no success
  SourceRoot root = SourceRoot::of_process();
};
std::string sarif_log(const SarifRun& run);

// JUnit's XML as CI servers read it: suites of cases, each passed, failed, broken or skipped.

enum class TestResult : std::uint8_t { passed, failed, broken, skipped };

struct TestCase {
  std::string group;  ///< "classname"
  std::string name;
  TestResult result = TestResult::passed;
  std::string type = {};     ///< of a failure: the cause
  std::string message = {};  ///< one line
  std::string text = {};     ///< more lines; of a case that passed, its output
};

struct TestSuite {
  std::string name;
  std::vector<TestCase> cases = {};
};

std::string junit_xml(std::string_view name, const std::vector<TestSuite>& suites);

/// A finding as a case: an error fails, anything else passes and says so in its output.
TestCase test_case(const core::Finding& finding, std::string group);

/// GitHub's workflow commands, lines on a job's output that become annotations: by kind, cut to what GitHub
/// shows.
class GithubCommands {
 public:
  void add(core::Severity severity, std::string_view title, std::string_view text,
           std::string_view properties = {});
  std::string text() const;

 private:
  std::array<std::vector<std::string>, 3> commands_;
};

/// One command a finding, most severe first. Of each kind GitHub shows 10 a step: where there are more, the
/// last of these says how many are left out. Notes come last.
std::string github_commands(const std::vector<PlacedFinding>& findings, const SourceRoot& root,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes);

}  // namespace kshim::render
