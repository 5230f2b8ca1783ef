// SPDX-License-Identifier: Apache-2.0
// `kshim diff`: what a rebuild fixed and what it broke, from two scans or two analyses in JSON. The names are
// those of the diff JSON (docs/schema/diff.json).
#pragma once

#include "analyzer/render/scan/render.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::compare {

struct DiffRequest {
  std::vector<image::Arch> targets;  ///< judge for these GPUs alone
  image::Version driver;             ///< of these; unknown = newest
  bool kernels = false;              ///< compare kernels as well: reads all payloads
  unsigned jobs = 0;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// A file with device code.
struct Object {
  std::string name = {};    ///< as its side calls it; of a member path!member
  std::string place = {};   ///< below the side's root
  std::string member = {};  ///< inside `place` where that is an archive or wheel
  std::vector<device_code::ImageCount> images = {};
  std::optional<std::map<std::string, std::set<std::string>>> kernels = {};  ///< and their architectures
  std::map<image::Arch, render::Outcome> targets = {};                       ///< where modules were judged
};

struct SideFinding {
  std::string cause = {};
  core::Severity severity = core::Severity::error;
  std::string object = {};  ///< Object::name
  std::string need = {};
  std::optional<std::int64_t> code = {};
  std::string text = {};  ///< a sentence
};

struct Side {
  std::string path = {};
  bool reports = false;        ///< an analysis, which has findings and no objects
  bool nothing_there = false;  ///< nothing of it could be read
  std::vector<Object> objects = {};
  std::vector<SideFinding> findings = {};
  std::vector<std::string> devices = {};  ///< "NVIDIA A100 (8.0)": what reports are of
  std::string verdict = {};               ///< of reports
  std::vector<std::string> notes = {};
};

/// same: of findings alone.
enum class Effect : std::uint8_t { lost, gained, changed, same };
struct Change {
  Effect effect = Effect::changed;
  /// object, architecture, ptx, ltoir, tileir, ptx-isa, gpu, target, kernel, finding, images
  std::string what = {};
  std::optional<std::size_t> pair = {};  ///< index into Diff::pairs
  std::string arch = {};
  std::string text = {};    ///< a clause, without the object's name
  std::string before = {};  ///< of a finding its cause
  std::string after = {};
  std::vector<std::string> kernels = {};  ///< where it is about kernels: all of them
};

/// An object on both sides, or on one.
struct Pair {
  const Object* a = nullptr;
  const Object* b = nullptr;
  const char* match = "";  ///< path, package, name
  const Object& any() const { return b != nullptr ? *b : *a; }
};

struct Diff {
  DiffRequest request;
  Side a;
  Side b;
  std::vector<Pair> pairs;      ///< into a and b: neither copied nor moved any more
  std::vector<Change> changes;  ///< lost first, by pair
  std::vector<std::string> notes;
  std::size_t count(Effect effect) const {
    return static_cast<std::size_t>(std::ranges::count(changes, effect, &Change::effect));
  }
  bool has(Effect effect) const { return count(effect) != 0; }
};

/// An analysis or a scan in JSON. Reports and whatever `kshim scan` reads become one first.
Side read_side(const std::string& path, const DiffRequest& options);
/// The text of a kshim-scan/1 or kshim-analysis/1; false where it is neither, with a clause in side.notes.
bool read_json(const std::string& text, Side& side);
/// Of two sides of one kind.
void compare_sides(Diff& diff);
/// Which object of `a` is which of `b`: by path, by the path inside a distribution, by name. Two files that
/// are alone are each other's. In the order of `a`, then of `b`.
std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b);
/// "libcudart-e409450e.so.11.0" and "libcudart.so.12" as libcudart.so; "_C.cpython-311-x86_64-linux-gnu.so"
/// as _C.so: what stays of a file's name when its version changes.
std::string stem(std::string_view file);

inline constexpr std::array kDiffFormats = {render::Format::text, render::Format::json,
                                            render::Format::markdown, render::Format::html,
                                            render::Format::github};
std::string rendered(const Diff& diff, render::Format format, const render::RenderOptions& options);
/// "B lacks what A had in 1 of 3 files; 1 finding is new or worse"
std::string summary_of(const Diff& diff);

}  // namespace kshim::compare
