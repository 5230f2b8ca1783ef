// SPDX-License-Identifier: Apache-2.0
// A finding: one cause, once, with its evidence and what to do. The names are those of the analysis JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

enum class Severity : std::uint8_t { none, info, warning, error };
std::string_view to_name(Severity severity);

enum class Cause : std::uint8_t {
#define KSHIM_CAUSE(id, name, severity, when, headline) id,
#include "analyzer/core/causes.def"
#undef KSHIM_CAUSE
};
struct CauseRow {
  Cause cause;
  std::string_view name;
  Severity severity;
  std::string_view when;
  std::string_view headline;
};
const CauseRow& row_of(Cause cause);

enum class FixKind : std::uint8_t {
#define KSHIM_FIX_KIND(id, name) id,
#include "analyzer/core/fix_kinds.def"
#undef KSHIM_FIX_KIND
};
std::string_view to_name(FixKind kind);

struct Fix {
  FixKind kind = FixKind::rebuild;
  std::string title;
  std::vector<std::string> commands;
  std::string why;
  std::string caveat;
};

/// What failed at a place, as far as the user's own line goes: a runtime loads much that no line asked for.
enum class Near : std::uint8_t { load, call, launch };

struct DeadEnd {
  std::string action;
  std::string why;
};

struct Evidence {
  std::string text;      ///< a sentence
  std::string location;  ///< report:line
};

/// One image of the architecture table: what it is and why it does or does not fit.
struct ImageVerdict {
  std::string kind;  ///< cubin, ptx, ltoir
  std::string arch;  ///< sm_75
  std::string isa;   ///< of PTX: "9.0"
  std::uint64_t count = 0;
  bool fits = false;
  std::string reason;  ///< a clause
};

struct Place {
  std::string file;
  unsigned line = 0;
  std::string function;
  std::string object;  ///< of a native frame
  std::uint64_t offset = 0;
  bool python = false;
};

/// A process that a finding was seen in.
struct SeenIn {
  std::string run;  ///< empty where its report names none
  std::string host;
  std::optional<unsigned> rank;
  long pid = 0;
  std::uint64_t count = 1;
};

struct Finding {
  Cause cause = Cause::unknown;
  Severity severity = Severity::error;
  double confidence = 0;
  std::optional<int> code;
  std::string code_name;
  std::string object;                      ///< path; empty for a loose image
  std::vector<std::string> other_objects;  ///< of which the same holds: loose images of one scan
  std::string build_id;                    ///< of the object, where known
  std::string package;                     ///< "torch 2.9.1 (pip)"
  std::string headline;
  std::vector<std::string> kernels;  ///< demangled
  bool kernels_complete = true;
  std::uint64_t kernels_total = 0;  ///< of the module, where known
  std::vector<std::string> have;
  std::vector<ImageVerdict> images;
  std::string need;
  std::vector<std::string> devices;  ///< "GPU 0: NVIDIA GeForce GTX 1080 (6.1)"
  std::uint64_t count = 1;           ///< how often it happened, by whatever call
  std::uint64_t call_count = 0;      ///< of these, how often failed_call told it
  std::string failed_call;           ///< "cuLibraryGetKernel"
  std::string failed_kernel;         ///< demangled
  Place kernel_source;               ///< file and line of failed_kernel, where an image tells
  std::vector<SeenIn> processes;     ///< of many, the first
  std::uint64_t processes_total = 0;
  std::string
      seen_in;  ///< of several: "ranks 0-7 on node01, 8-15 on node02"; empty where there is one process
  std::vector<Evidence> evidence;
  std::vector<std::string> failures;  ///< report:line of each failure it accounts for; of many, the first
  std::vector<Place> where;           ///< innermost first; first is the user's own
  Near near = Near::load;             ///< what failed at the first of them, and with failed_kernel
  std::vector<Fix> fixes;
  std::vector<DeadEnd> dead_ends;
  std::vector<std::string> remarks;  ///< true and useful: "Your driver is fine."
  bool is_by_design = false;         ///< how such a library works: nothing to see to
  std::vector<std::string> unread;   ///< where the finding is a doubt: files that could not be looked into
};

}  // namespace kshim::analysis
