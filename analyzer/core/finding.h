// SPDX-License-Identifier: Apache-2.0
// A finding: one cause, once, with its evidence and what to do. The names are those of the analysis JSON.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/image/select.h"

namespace kshim::diagnose {
struct Facts;
}

namespace kshim::core {

enum class Severity : std::uint8_t { none, info, warning, error };
std::string_view to_name(Severity severity);

enum class Cause : std::uint8_t {
#define KSHIM_CAUSE(id, name, severity, traits, when, headline, title) id,
#include "analyzer/core/causes.def"
#undef KSHIM_CAUSE
};
/// What several parts ask of a cause. Which cause has which trait: causes.def.
namespace cause_trait {
enum Trait : unsigned {
  none = 0,
  image = 1U << 0,           ///< about images: a finding of it makes the verdict `gap`
  needs_arch = 1U << 1,      ///< of a GPU that is known, the finding names the architecture it needs
  code_missing = 1U << 2,    ///< the file has no code for the GPU: more has to be built
  arch_list = 1U << 3,       ///< another list of architectures ends it: it counts for the plan of a fleet
  not_the_driver = 1U << 4,  ///< another driver does not end it
  switched = 1U << 5,        ///< a switch in the environment is the cause
  handled = 1U << 6,         ///< programs ask in order to find out: no alarm where one went on and ended well
  optional = 1U << 7,        ///< programs go on without, on the CPU
};
}  // namespace cause_trait

struct CauseRow {
  Cause cause;
  std::string_view name;
  Severity severity;
  unsigned traits;  ///< cause_trait::Trait, joined by |
  std::string_view when;
  std::string_view headline;
  std::string_view title;  ///< a pattern, with {file}, {gpu} and {have}; empty: the headline
};
std::span<const CauseRow> causes();
const CauseRow& row_of(Cause cause);
inline bool has_trait(Cause cause, unsigned traits) { return (row_of(cause).traits & traits) != 0; }
/// Code that is not in the file cannot come from anywhere else.
inline bool lacks_code(Cause cause) { return has_trait(cause, cause_trait::code_missing); }
inline bool is_image_cause(Cause cause) { return has_trait(cause, cause_trait::image); }

enum class FixKind : std::uint8_t {
#define KSHIM_FIX_KIND(id, name) id,
#include "analyzer/core/fix_kinds.def"
#undef KSHIM_FIX_KIND
};
std::string_view to_name(FixKind kind);  ///< empty for what is none

/// What a log need not say, and a fix may depend on.
enum class Assumed : std::uint8_t { gpu, cuda, driver, system, package_manager, python };
std::string_view to_name(Assumed what);
std::string_view words_of(Assumed what);  ///< what the fix takes for granted: "Linux"
/// The most that a finding is sure whose first fix assumes something.
constexpr double kMostIfAssumed = 0.8;

/// The person that can do it.
enum class Actor : std::uint8_t { you, admin, maker };
std::string_view to_name(Actor actor);   ///< "you", "admin", "maker"
Actor actor_of(std::string_view name);   ///< the inverse; "" is the one that ran the program
std::string_view words_of(Actor actor);  ///< "you", "admin of the host", "maker of the program"

struct Fix {
  FixKind kind = FixKind::rebuild;
  std::string title;
  std::vector<std::string> commands;
  std::string why;
  std::string caveat;
  std::string_view id = {};  ///< which fix it is, a literal: names are part of the JSON
  std::vector<std::pair<std::string_view, std::string>> arguments = {};  ///< by name, which is a literal
  image::Version cuda = {};      ///< of what it installs, or builds with; unknown where none is named
  std::string_view system = {};  ///< "linux": works there alone
  std::vector<Assumed> assumed = {};
  Actor actor = Actor::you;
  bool names_program = false;  ///< a command holds the program that failed, or has a place for it
};

/// What failed at a place, as far as the user's own line goes: a runtime loads much that no line asked for.
enum class Near : std::uint8_t { load, call, launch };

struct DeadEnd {
  std::string action;
  std::string why;
  bool of_driver = false;  ///< another driver
};

/// Bytes of a text; empty where no part of it is meant.
struct TextPart {
  std::size_t from = 0;
  std::size_t to = 0;
};

/// A line of a report or of a log, or a file that was looked at, which has no line.
struct ReportLine {
  std::string file;
  std::uint64_t line = 0;
  bool empty() const { return file.empty(); }
  std::string text() const;  ///< "report.jsonl:8"
  bool operator==(const ReportLine&) const = default;
};

/// What a piece of evidence is. Names are part of the JSON: they stay.
enum class EvidenceId : std::uint8_t {
#define KSHIM_EVIDENCE(id, name, what) id,
#include "analyzer/core/evidence.def"
#undef KSHIM_EVIDENCE
};
std::string_view to_name(EvidenceId id);

struct Evidence {
  EvidenceId id = EvidenceId::rule;
  std::string text;  ///< a sentence
  ReportLine at;
  std::vector<std::pair<std::string_view, std::string>> arguments = {};  ///< by name, which is a literal
};

/// A GPU that a finding is about.
struct Device {
  enum class Kind : std::uint8_t {
    present,  ///< one that the process had
    assumed,  ///< by --assume-cc
    target,   ///< by --target
    named,    ///< in a log
  };
  Kind kind = Kind::present;
  std::optional<std::uint64_t> ordinal = {};
  std::string name = {};  ///< without the simulator's "(simulated)"
  std::optional<image::ComputeCapability> cc = {};
  bool simulated = false;
  bool operator==(const Device&) const = default;
};
/// "GPU 0: NVIDIA A100 (8.0)", "target sm_120", "an assumed GPU (8.6)".
std::string text_of(const Device& device);
Device target_device(std::optional<image::ComputeCapability> cc);

/// The package that a file belongs to.
struct PackageName {
  std::string name = {};
  std::string version = {};
  std::string installer = {};  ///< pip, conda, dpkg, rpm
  bool empty() const { return name.empty(); }
  std::string label() const;  ///< "torch 2.9.1"
  std::string text() const;   ///< "torch 2.9.1 (pip)"
  bool operator==(const PackageName&) const = default;
};

/// One image of the architecture table: what it is and why it does or does not fit.
struct ImageVerdict {
  std::string kind;  ///< cubin, ptx, ltoir
  std::string arch;  ///< sm_75
  std::string isa;   ///< of PTX: "9.0"
  std::uint64_t count = 0;
  bool fits = false;
  std::string reason;  ///< a clause
  image::Candidate candidate = {};
  bool would_fit = false;  ///< it fits the GPU, and something else keeps it from running
};

struct Place {
  std::string file = {};
  unsigned line = 0;
  std::string function = {};
  std::string object = {};  ///< of a native frame
  std::uint64_t offset = 0;
  bool python = false;
};

/// A process that a finding was seen in.
struct SeenIn {
  std::string run;  ///< empty where its report names none
  std::string host;
  std::optional<std::uint64_t> rank;
  long pid = 0;
  std::uint64_t count = 1;
};

/// What a finding lists of its kernels and places; the count of all is kept.
constexpr std::size_t kMaxKernels = 1000;
constexpr std::size_t kMaxPlaces = 3;

struct Finding {
  Cause cause = Cause::unknown;
  Severity severity = Severity::error;
  double confidence = 0;
  std::optional<int> code;
  std::string code_name;
  std::string object;                      ///< path; empty for a loose image
  std::vector<std::string> other_objects;  ///< the finding holds for these, too: loose images of one scan
  std::string build_id;                    ///< of the object, where known
  PackageName package;
  std::string headline;              ///< of this very finding; empty: what is said of all of its cause
  std::vector<std::string> kernels;  ///< demangled
  bool kernels_complete = true;
  std::uint64_t kernels_total = 0;  ///< of the module, where known
  std::vector<std::string> have;
  std::vector<ImageVerdict> images;
  std::string need;
  std::vector<Device> devices;
  std::uint64_t count = 1;             ///< how often it happened, by whatever call
  std::uint64_t call_count = 0;        ///< of these, how often failed_call told it
  std::string failed_call;             ///< "cuLibraryGetKernel"
  std::string failed_kernel;           ///< demangled
  Place kernel_source;                 ///< file and line of failed_kernel, where an image tells
  std::vector<SeenIn> processes;       ///< of many, the first
  std::vector<std::uint32_t> seen_by;  ///< all of them, as places in Analysis::processes
  std::uint64_t processes_total = 0;
  std::string seen_in;  ///< of several: "ranks 0-7 on node01, 8-15 on node02"
  std::vector<Evidence> evidence;
  std::vector<ReportLine> failures;  ///< each failure it accounts for; of many, the first
  std::vector<Place> where;          ///< innermost first; first is the user's own
  Near near = Near::load;            ///< what failed at the first of them, and with failed_kernel
  std::shared_ptr<const diagnose::Facts>
      about;  ///< what its fixes and its title depend on; null: nothing is to be advised
  std::vector<std::shared_ptr<const diagnose::Facts>>
      about_others;  ///< the same for each further GPU of one file
  std::vector<Fix> fixes;
  std::vector<DeadEnd> dead_ends;
  std::vector<std::string> remarks;  ///< true and useful: "Your driver is fine."
  bool is_by_design = false;         ///< how such a library works: nothing to see to
  std::vector<std::string> unread;   ///< where the finding is a doubt: files that could not be looked into
};

// CUDA's codes that several parts ask for. Their names: kshim/base/cuda_errors.def.

inline constexpr int kNotInitialized = 3;
/// 301: the file that a load names.
inline constexpr int kFileNotFound = 301;
/// 35: the driver is older than the runtime, or there is none.
inline constexpr int kInsufficientDriver = 35;

inline bool is_problem(const Finding& finding) { return finding.severity > Severity::info; }

}  // namespace kshim::core
