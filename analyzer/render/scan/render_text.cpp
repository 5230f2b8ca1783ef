// SPDX-License-Identifier: Apache-2.0
// The scan as text: what is wrong on top, then the matrix, then the totals.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "analyzer/core/text.h"
#include "analyzer/input/files/kernel_needs.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/fleet_text.h"
#include "analyzer/render/page.h"
#include "analyzer/render/scan/clean.h"
#include "analyzer/render/scan/matrix.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/scan/sizes.h"

namespace kshim::scan {
namespace {

using analysis::Detail;
using analysis::Finding;
using analysis::Page;
using analysis::Severity;
using analysis::Tone;

constexpr std::size_t kFindings = 12;
constexpr std::size_t kRows = 30;
constexpr std::size_t kNotes = 10;
constexpr std::size_t kNamedKernels = 3;

std::string targets_text(const Scan& scan) {
  std::vector<std::string> names;
  for (const image::Arch& target : scan.targets)
    names.emplace_back(image::to_name(image::ImageKind::cubin, target).view());
  return analysis::enumerate(names);
}

bool is_problem(const Finding& finding) { return finding.severity > Severity::info; }

void print_verdict(const Scan& scan, Page& page) {
  const std::string files = analysis::counted(scan.objects.size(), "file");
  const bool problems = std::any_of(scan.findings.begin(), scan.findings.end(), is_problem);
  if (scan.incomplete() && !problems) {
    // Never "ok": what was not read was not judged.
    page.titled(
        Tone::warning, "incomplete:",
        fmt::format("{} could not be read and {} not judged: see the notes below",
                    analysis::counted(scan.notes.size(), "place"), scan.notes.size() == 1 ? "is" : "are"));
  } else if (scan.objects.empty()) {
    page.titled(Tone::strong,
                "no device code:", fmt::format("in {} looked at", analysis::counted(scan.files, "file")));
  } else if (scan.held && !problems) {
    const auto rules = static_cast<std::size_t>(std::count_if(
        scan.objects.begin(), scan.objects.end(),
        [](const ScannedObject& object) { return object.expected && !object.expected->reason.empty(); }));
    page.titled(Tone::good, "ok:",
                fmt::format("{} with device code, as expected{}", files,
                            rules == 0 ? ""
                                       : fmt::format(", {} by {} for such files", rules,
                                                     rules == 1 ? "a rule" : "rules")));
  } else if (!scan.targets.empty() && !problems) {
    page.titled(Tone::good,
                "ok:", fmt::format("{} with device code, no problem on {}", files, targets_text(scan)));
  }
}

void print_findings(const Scan& scan, const analysis::RenderOptions& options, Page& page) {
  if (options.verbose) {
    for (const Finding& finding : scan.findings) print_finding(finding, Detail::everything, page);
    return;
  }
  // The most severe come first; what is no problem is left to --verbose.
  const auto total =
      static_cast<std::size_t>(std::count_if(scan.findings.begin(), scan.findings.end(), is_problem));
  if (total == 0) return;
  if (total == 1) return print_finding(scan.findings.front(), Detail::full, page);
  // Most findings of one scan are one finding about many files: a line each, and the first with all there is
  // to it.
  const std::size_t shown = total <= kFindings + 1 || scan.held ? total : kFindings;
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = scan.findings[i];
    page.titled(tone_of(finding.severity), fmt::format("{}:", to_name(finding.severity)), title_of(finding));
  }
  if (shown < total) page.line(fmt::format("and {} more: --verbose shows them", total - shown));
  print_finding(scan.findings.front(), Detail::shared, page);
}

void print_sizes(const Scan& scan, bool verbose, Page& page) {
  for (const SizeTable& table : size_tables(scan, verbose ? 100 : 10)) {
    page.blank();
    page.line(page.paint(
        Tone::strong,
        fmt::format("bytes by {}: {}{}", table.what, size_text(table.total),
                    std::string_view(table.what) == "kernel" ? " of machine code" : " as stored")));
    for (const SizeRow& row : table.rows) {
      std::string line =
          fmt::format("{:>9} {:>5}  {}", size_text(row.bytes), share_text(row.bytes, table.total), row.name);
      if (row.clear != 0)
        line += fmt::format(" ({}{})", analysis::counted(row.images, "image"),
                            row.clear == row.bytes ? "" : fmt::format(", {} unpacked", size_text(row.clear)));
      if (!row.more.empty()) line += "  " + analysis::shorten(row.more, 60);
      page.line(std::move(line));
    }
  }
}

// Kernels of one file, grouped by the architectures that they have: what differs from the rest is the news.
void print_kernels(const ScannedObject& object, bool verbose, Page& page) {
  std::map<std::vector<std::string>, std::vector<const ScannedKernel*>> groups;
  for (const ScannedKernel& kernel : *object.kernels) groups[kernel.archs()].push_back(&kernel);
  std::vector<decltype(groups)::const_pointer> order;
  for (const auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
  page.blank();
  page.line(page.paint(Tone::strong, fmt::format("{}: {}", object.name(),
                                                 analysis::counted(object.kernels->size(), "kernel"))));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& [archs, kernels] = *order[i];
    page.paragraph(fmt::format("{:>7}  {}", kernels.size(), analysis::join(archs, " ")), 2, 9);
    const std::size_t most = verbose             ? kernels.size()
                             : order.size() == 1 ? 0
                                                 : std::min(kNamedKernels, kernels.size());
    for (std::size_t k = 0; k < most; ++k) {
      const std::string& name = kernels[k]->demangled;
      page.line("           " + (verbose ? name : analysis::shorten(name, page.width() - 11)));
      const std::string needs = verbose ? needs_text(*kernels[k]) : std::string();
      if (!needs.empty()) page.line("             " + page.paint(Tone::dim, needs));
    }
    if (most != 0 && most < kernels.size())
      page.line(fmt::format("           and {} more", kernels.size() - most));
  }
}

/// What the words of the targets' columns mean, as far as they are there.
std::string verdict_legend(const Scan& scan, bool ltoir, bool summed) {
  std::string out =
      "; ok = runs as SASS, jit = some or all is compiled from PTX at load, part = some kernels lack code, "
      "none = nothing runs, - = no kernels";
  if (ltoir) out += " (LTO-IR alone runs nothing)";
  const bool picks = std::any_of(scan.objects.begin(), scan.objects.end(), [](const ScannedObject& object) {
    return std::any_of(object.targets.begin(), object.targets.end(), [](const TargetVerdict& verdict) {
      return verdict.picks && verdict.lacking != 0 && !verdict.nothing_fits();
    });
  });
  if (picks) out += "; a library that picks its code by GPU is ok with the modules it has for that GPU";
  if (summed) out += "; 4/9 = something runs of 4 of 9 files, the others are built for other GPUs only";
  return out;
}

void print_totals(const Scan& scan, bool summed, Page& page) {
  std::uint64_t fatbins = 0;
  std::uint64_t images = 0;
  bool ltoir = false;
  bool tileir = false;
  for (const ScannedObject& object : scan.objects) {
    fatbins += object.fatbins;
    for (const analysis::ImageCount& row : object.images) {
      images += row.count;
      ltoir = ltoir || row.candidate.kind == image::ImageKind::ltoir;
      tileir = tileir || row.candidate.kind == image::ImageKind::tileir;
    }
  }
  page.blank();
  std::string text = fmt::format("{} ({})", analysis::counted(scan.files, "file"), size_text(scan.bytes));
  if (scan.duplicates != 0)
    text += fmt::format(" and {} to them", analysis::counted(scan.duplicates, "link"));
  text += fmt::format(": {} with device code, {}, {}", scan.objects.size(),
                      analysis::counted(fatbins, "fatbin"), analysis::counted(images, "image"));
  page.paragraph(text, 0);
  for (const ScannedImage& image : scan.images)
    page.paragraph(
        fmt::format("{}: image {}{}, {}", image.path, image.name.empty() ? "without a name" : image.name,
                    image.platform.empty() ? "" : " for " + image.platform,
                    analysis::counted(image.layers, "layer")),
        0);
  if (scan.objects.empty()) return;
  std::string legend = "S = SASS (cubin), P = PTX";
  if (ltoir) legend += ", L = LTO-IR";
  if (tileir) legend += ", T = Tile IR";
  if (!scan.targets.empty()) legend += verdict_legend(scan, ltoir, summed);
  page.paragraph(legend, 0, 0, Tone::dim);
}

}  // namespace

std::string render_text(const Scan& dirty, const analysis::RenderOptions& options) {
  const Scan scan = cleaned(dirty, options.unicode);
  Page page(options);
  print_verdict(scan, page);
  print_findings(scan, options, page);
  print_fleet(scan.fleet, options.verbose, page);
  auto rows = matrix_rows(scan, false);
  if (!options.verbose && rows.size() > kRows) rows = matrix_rows(scan, true);
  const bool summed =
      std::any_of(rows.begin(), rows.end(), [](const MatrixRow& row) { return row.files > 1; });
  print_matrix(scan, std::move(rows), options.verbose ? scan.objects.size() : kRows, options.width, page);
  for (const ScannedObject& object : scan.objects) {
    if (object.kernels && !object.kernels->empty() && !scan.sizes)
      print_kernels(object, options.verbose, page);
  }
  if (scan.sizes) print_sizes(scan, options.verbose, page);
  for (const BudgetUse& use : scan.budget)
    if (options.verbose || scan.budget.size() <= kRows)
      page.line(fmt::format("budget of {}: {} of {} ({}) {}", use.of, size_text(use.bytes),
                            size_text(use.limit), share_text(use.bytes, use.limit), use.name));
  print_totals(scan, summed, page);
  const std::size_t notes = options.verbose ? scan.notes.size() : std::min(kNotes, scan.notes.size());
  for (std::size_t i = 0; i < notes; ++i) {
    page.blank();
    page.titled(Tone::strong, "note:", scan.notes[i]);
  }
  if (notes < scan.notes.size()) page.line(fmt::format("and {} more notes", scan.notes.size() - notes));
  return std::move(page).take();
}

}  // namespace kshim::scan
