// SPDX-License-Identifier: Apache-2.0
// What a rebuild fixed and what it broke: two sides of the same kind, before and after. What `kshim diff`
// calls. The names are those of the diff JSON (docs/schema/diff.json).
#pragma once

#include "analyzer/render/scan/render.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::compare {

struct DiffRequest {
  std::vector<image::Arch> targets;  ///< judge for these GPUs alone
  image::Version driver;             ///< of these; unknown = newest
  bool kernels = false;              ///< compare kernels as well: reads all payloads
  bool sizes = false;                ///< say every difference in bytes, of architectures and kernels
  unsigned jobs = 0;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct Object {
  std::string name = {};     ///< as its side calls it; of a member path!member
  std::string place = {};    ///< below the side's root
  std::string member = {};   ///< inside `place` where that is an archive or wheel
  std::string package = {};  ///< without a version
  std::string build_id = {};
  std::uint64_t bytes = 0;  ///< of the file; 0 for not known
  std::vector<ImageCount> images = {};
  std::optional<std::map<std::string, std::vector<std::string>>> kernels =
      {};                                                ///< demangled, and their architectures
  std::map<std::string, std::uint64_t> code_bytes = {};  ///< of kernels, demangled, where they were asked for
  std::map<image::Arch, Outcome> targets = {};           ///< where modules were judged
};

struct SideFinding {
  std::string cause = {};
  Severity severity = Severity::error;
  std::string object = {};  ///< Object::name
  std::string need = {};
  std::optional<std::int64_t> code = {};
  std::string text = {};  ///< a sentence
};

enum class SideKind : std::uint8_t { reports, scan };
struct Side {
  std::string path;
  SideKind kind = SideKind::scan;
  bool nothing_there = false;   ///< nothing of it could be read
  std::vector<Object> objects;  ///< an analysis has none
  std::vector<SideFinding> findings;
  std::vector<std::string> devices;  ///< "NVIDIA A100 (8.0)": what reports are of
  std::string verdict;               ///< of reports
  std::vector<std::string> notes;
};

enum class Effect : std::uint8_t { lost, gained, changed };
struct Change {
  Effect effect = Effect::changed;
  /// object, architecture, ptx, ltoir, ptx-isa, gpu, target, kernel, finding, size, images
  std::string what = {};
  std::optional<std::size_t> pair = {};  ///< index into Diff::pairs
  std::string arch = {};
  std::string text = {};  ///< a clause, without the object's name
  std::string before = {};
  std::string after = {};
  std::vector<std::string> kernels = {};  ///< where it is about kernels: all of them
};

/// An object on both sides, or on one.
struct Pair {
  const Object* a = nullptr;
  const Object* b = nullptr;
  const char* match = "";  ///< path, package, name, build-id
  const Object& any() const { return b != nullptr ? *b : *a; }
};

struct FindingPair {
  SideFinding a;
  SideFinding b;
};

struct Diff {
  Side a;
  Side b;
  std::vector<image::Arch> targets;
  image::Version driver;
  std::vector<Pair> pairs;      ///< into a and b: neither copied nor moved any more
  std::vector<Change> changes;  ///< lost first, by pair
  std::vector<SideFinding> fixed;
  std::vector<SideFinding> broken;
  std::vector<FindingPair> other;  ///< another cause, or another severity, of the same trouble
  std::vector<SideFinding> stayed;
  std::vector<std::string> notes;
  bool lost() const;
  bool gained() const;
};

/// An analysis or a scan in JSON; reports, folders of them and whatever `kshim scan` reads are made one
/// first.
Side read_side(const std::string& path, const DiffRequest& options);
/// Of two sides of one kind.
void compare_sides(const DiffRequest& options, Diff& diff);

inline constexpr std::array kDiffFormats = {Format::text, Format::json, Format::markdown, Format::html,
                                            Format::github};
std::string rendered(const Diff& diff, Format format, const RenderOptions& options);
std::string_view to_name(Effect effect);
/// "B lacks what A had in 1 of 3 files; 1 finding is new or worse"
std::string summary_of(const Diff& diff);

// The parts of compare_sides().

/// What became of the images of an object that is on both sides, and what that means for GPUs.
void compare_images(const Pair& pair, std::size_t number, const DiffRequest& options,
                    std::vector<Change>& changes);
/// The findings of both sides, by cause and by the objects that belong together.
void compare_findings(const DiffRequest& options, Diff& diff);
/// How an object does on a GPU: as its modules were judged, else by its images alone.
Outcome outcome_on(const Object& object, image::Arch target, image::Version driver);
/// "had its own code", "was compiled from PTX" ...
std::string outcome_text(Outcome outcome, bool before);

/// Which object of `a` is which of `b`: by path, then by the part of the path inside a distribution, then by
/// name, then by build id. Two files that are alone are each other's, whatever they are called. What has no
/// counterpart stands alone. In the order of `a`, then of `b`.
std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b);

/// "libcudart-e409450e.so.11.0" and "libcudart.so.12" as libcudart.so; "_C.cpython-311-x86_64-linux-gnu.so"
/// as _C.so: what stays of a file's name when its version changes.
std::string stem(std::string_view file);
/// "torch-2.9.1+cu128-cp311-cp311-linux_x86_64.whl" as torch; of other archives the name without a version.
std::string distribution(std::string_view archive);

// What read_side() is made of.

/// The text of a kshim-scan/1 or kshim-analysis/1; false where it is neither, with a clause in side.notes.
bool read_json(const std::string& text, Side& side);

}  // namespace kshim::compare
