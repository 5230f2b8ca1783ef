// SPDX-License-Identifier: Apache-2.0
// A scan in the formats of analyzer/core/formats.def; what each is, docs/output.md says. The JSON
// is kshim-scan/1, as docs/schema/scan.json describes it.
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/render/document.h"
#include "analyzer/render/formats.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/verbs/scan.h"

namespace kshim::render {

/// How one object does on one target, in a word; from best to worst.
enum class Outcome : std::uint8_t { no_kernels, sass, jit, part, none };
Outcome outcome_of(const diagnose::TargetVerdict& verdict);
/// Its word: ok, jit, part, none; empty where there are no kernels.
constexpr std::string_view to_name(Outcome outcome) {
  constexpr std::string_view kNames[] = {"", "ok", "jit", "part", "none"};
  return kNames[static_cast<std::size_t>(outcome)];
}

/// The sum over the objects of a row.
struct RowVerdict : diagnose::TargetVerdict {
  Outcome worst = Outcome::no_kernels;  ///< of any of them
  std::size_t files = 0;                ///< with kernels
  std::size_t files_none = 0;           ///< how many of them are Outcome::none
  /// Some files run and others do not: counted, for the worst file's word says nothing of the package.
  bool mixed() const noexcept { return files_none != 0 && files_none < files; }
};

/// Of a process, in both JSON documents.
template <>
inline Json to_json(const input::RunningProcess& from) {
  return {{"pid", from.pid}, {"program", json_of(from.program)}, {"mapped", from.mapped.size()}};
}
template <>
inline Json to_json(const input::Check& from) {
  return {{"id", from.id},
          {"severity", to_name(from.severity)},
          {"text", from.text},
          {"advice", json_of(from.advice)}};
}

/// One line of the matrix: an object, or all objects of a distribution.
struct MatrixRow {
  std::string name;
  std::string package = {};  ///< of all its files, "torch 2.9.1"; empty: a file by itself
  std::uint64_t bytes = 0;
  std::size_t files = 1;
  bool requested = false;  ///< by name
  std::uint64_t modules = 0;
  std::vector<device_code::ImageCount> images;
  std::vector<RowVerdict> targets;
};

/// Objects by themselves, or summed by distribution where that makes fewer lines.
std::vector<MatrixRow> matrix_rows(const verbs::Scan& scan, bool by_distribution);

void write_checks(const std::vector<input::Check>& checks, Document& to);
/// Without what it takes in the file.
Json image_json(const device_code::ImageCount& image);
std::string rendered(const verbs::Scan& scan, Format format, const RenderOptions& options);

#define KSHIM_FORMAT(id, writer) \
  std::string render_##writer(const verbs::Scan& scan, Format format, const RenderOptions& options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT

}  // namespace kshim::render
