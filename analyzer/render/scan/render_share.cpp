// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render_share.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "analyzer/core/text.h"
#include "analyzer/input/files/kernel_needs.h"
#include "analyzer/render/each_string.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/scan/clean.h"
#include "analyzer/render/scan/matrix.h"
#include "analyzer/render/scan/sizes.h"
#include "analyzer/render/share.h"
#include "analyzer/render/share_analysis.h"
#include "analyzer/render/share_finding.h"

namespace kshim::scan {
namespace {

using analysis::code;
using analysis::Line;
using analysis::SharePage;
using analysis::Span;
using analysis::Style;
using image::ImageKind;
using Rows = std::vector<std::vector<Line>>;

constexpr const char* kYes = "\u2713";
constexpr const char* kNo = "\u2717";

Scan for_sharing(Scan dirty, bool full) {
  Scan scan = cleaned(std::move(dirty), true);
  if (full) return scan;
  const auto shortener = analysis::Shortener::for_user({});
  for (ScannedObject& object : scan.objects) {
    for (std::string* text : {&object.path, &object.member}) *text = shortener.text(*text);
    if (object.expected) object.expected->source = shortener.text(object.expected->source);
    if (!object.kernels) continue;
    for (ScannedKernel& kernel : *object.kernels) kernel.demangled = shortener.text(kernel.demangled);
  }
  for (std::string& note : scan.notes) note = shortener.text(note);
  analysis::each_string(
      scan.findings, [&](std::string& text) { text = shortener.text(text); },
      [&](std::string& command) { command = shortener.command(command); });
  return scan;
}

// "9.0a": what a person calls an architecture, whatever kind of image it is of.
std::string number_of(image::Arch arch) {
  std::string out(image::to_name(arch.cc).view());
  if (arch.suffix == image::Suffix::a) out += 'a';
  if (arch.suffix == image::Suffix::f) out += 'f';
  return out;
}

std::string kinds_of(const MatrixRow& row, image::Arch arch) {
  std::vector<std::string> kinds;
  for (const auto& [kind, name] :
       {std::pair{ImageKind::cubin, "SASS"}, std::pair{ImageKind::ptx, "PTX"},
        std::pair{ImageKind::ltoir, "LTO-IR"}, std::pair{ImageKind::tileir, "Tile IR"}}) {
    const bool has = std::any_of(row.images.begin(), row.images.end(), [&, k = kind](const auto& image) {
      return image.candidate.kind == k && image.candidate.arch == arch;
    });
    if (has) kinds.emplace_back(name);
  }
  return analysis::join(kinds, ", ");
}

void say_more(Rows& rows, std::size_t all, std::size_t shown) {
  if (all > shown) rows.push_back({{{fmt::format("and {} more", all - shown)}}});
}

/// A mark and what it means.
Line marked(bool good, std::string text) {
  Line out = {good ? Span{kYes, Style::good} : Span{kNo, Style::bad}};
  if (!text.empty()) out.insert(out.end(), {{" "}, {std::move(text)}});
  return out;
}

Line verdict_cell(const RowVerdict& verdict, std::size_t files) {
  const std::string modules = analysis::counted(verdict.sass + verdict.jit + verdict.lacking, "module");
  if (verdict.mixed())
    return {{fmt::format("{} of {} files; {} built for other GPUs only", verdict.files - verdict.files_none,
                         verdict.files,
                         verdict.files_none == 1 ? "1 is" : fmt::format("{} are", verdict.files_none))}};
  switch (verdict.worst) {
    case Outcome::none:
      return marked(false, files == 1 ? "nothing runs" : "nothing runs of any file");
    case Outcome::part:
      if (verdict.lacking == 0)
        return marked(false, fmt::format("{} without code",
                                         analysis::counted(verdict.kernels_lacking.value_or(0), "kernel")));
      return marked(false, fmt::format("{} of {} lack code", verdict.lacking, modules));
    case Outcome::sass:
    case Outcome::jit:
      if (verdict.picks && verdict.lacking != 0)
        return marked(true,
                      fmt::format("picks by GPU: {} of {} have code", verdict.sass + verdict.jit, modules));
      return marked(true, verdict.jit == 0 ? "" : fmt::format("{} compiled from PTX", verdict.jit));
    case Outcome::no_kernels:
      break;
  }
  return {{"no kernels", Style::dim}};
}

/// Numbers of findings by the file and the GPU that they are about.
class FindingNumbers {
 public:
  explicit FindingNumbers(const std::vector<analysis::Finding>& findings) : findings_(findings) {
    for (std::size_t i = 0; i < findings.size(); ++i)
      numbers_.try_emplace({findings[i].object, findings[i].need}, i + 1);
  }
  /// The cell, led to the finding that says why.
  Line linked(Line cell, const ScannedObject& object, image::Arch target) const {
    const image::Arch gpu{target.cc, image::Suffix::none};
    const std::string need(image::to_name(ImageKind::cubin, gpu).view());
    const auto found = numbers_.find({object.name(), need});
    if (found == numbers_.end() || cell.empty()) return cell;
    cell.back().finding = found->second;
    cell.back().hover = analysis::title_sentence(findings_[found->second - 1]);
    return cell;
  }

 private:
  const std::vector<analysis::Finding>& findings_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
};

void share_architectures(const std::vector<MatrixRow>& rows, std::size_t shown, SharePage& page) {
  std::vector<image::Arch> archs;
  for (const MatrixRow& row : rows) {
    for (const analysis::ImageCount& image : row.images) archs.push_back(image.candidate.arch);
  }
  std::sort(archs.begin(), archs.end());
  archs.erase(std::unique(archs.begin(), archs.end()), archs.end());
  std::vector<std::string> head = {"File", "Size"};
  for (const image::Arch arch : archs) head.push_back(number_of(arch));
  Rows table;
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<Line> cells = {{code(rows[i].name)}, {{size_text(rows[i].bytes), Style::number}}};
    for (const image::Arch arch : archs) cells.push_back({{kinds_of(rows[i], arch)}});
    table.push_back(std::move(cells));
  }
  say_more(table, rows.size(), shown);
  page.heading(2, {{"Built for"}});
  page.table(head, table);
}

/// `single`: each row is one object of the scan, in its order.
void share_targets(const Scan& scan, const std::vector<MatrixRow>& rows, bool single, std::size_t shown,
                   SharePage& page) {
  if (scan.targets.empty()) return;
  const FindingNumbers numbers(scan.findings);
  std::vector<std::string> head = {"File"};
  for (const image::Arch target : scan.targets)
    head.emplace_back(image::to_name(ImageKind::cubin, target).view());
  Rows table;
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<Line> cells = {{code(rows[i].name)}};
    for (const RowVerdict& verdict : rows[i].targets) {
      Line cell = verdict_cell(verdict, rows[i].files);
      if (single) cell = numbers.linked(std::move(cell), scan.objects[i], verdict.target);
      cells.push_back(std::move(cell));
    }
    table.push_back(std::move(cells));
  }
  say_more(table, rows.size(), shown);
  page.heading(2, {{"Runs on"}});
  if (scan.driver.known())
    page.paragraph({{fmt::format("With a driver that serves CUDA {}.", image::to_name(scan.driver).view())}});
  page.table(head, table);
}

void share_expected(const Scan& scan, SharePage& page) {
  if (!scan.held) return;
  Rows table;
  for (const ScannedObject& object : scan.objects) {
    if (!object.expected || table.size() >= page.limits().rows) continue;
    const Expected& expected = *object.expected;
    table.push_back({{code(object.name())},
                     marked(expected.met(), expected.skipped ? "left out" : expected.list),
                     {{analysis::join(expected.missing, ", ")}},
                     {{analysis::join(expected.surplus, ", ")}},
                     {{expected.reason}}});
  }
  if (table.empty()) return;
  page.heading(2, {{"Expected"}});
  page.table({"File", "Expected", "Missing", "Too much", "Reason"}, table);
}

void share_sizes(const Scan& scan, SharePage& page) {
  if (!scan.sizes) return;
  for (const SizeTable& size : size_tables(scan, page.limits().rows)) {
    Rows table;
    for (const SizeRow& row : size.rows)
      table.push_back({{code(analysis::shorten(row.name, page.limits().columns))},
                       {{size_text(row.bytes), Style::number}},
                       {{share_text(row.bytes, size.total)}},
                       {{analysis::shorten(row.more, page.limits().columns)}}});
    page.heading(2, {{fmt::format("Bytes by {}", size.what)}});
    page.table({size.what, "Bytes", "Share", ""}, table);
  }
}

void share_kernels(const Scan& scan, SharePage& page) {
  std::size_t room = page.limits().kernels;
  for (const ScannedObject& object : scan.objects) {
    if (!object.kernels || object.kernels->empty()) continue;
    if (room == 0)
      return page.paragraph(
          {{"Kernels of further files are left out: "}, code("--format json"), {" has them all."}});
    page.heading(2, {{"Kernels of "}, code(object.name())});
    page.open_details(analysis::counted(object.kernels->size(), "kernel"));
    Rows table;
    const std::size_t shown = std::min({object.kernels->size(), page.limits().rows, room});
    room -= shown;
    for (std::size_t i = 0; i < shown; ++i) {
      const ScannedKernel& kernel = (*object.kernels)[i];
      table.push_back({{code(analysis::shorten(kernel.demangled, page.limits().columns))},
                       {{analysis::join(kernel.archs(), ", ")}},
                       {{needs_text(kernel)}}});
    }
    say_more(table, object.kernels->size(), shown);
    page.table({"Kernel", "In images for", "Takes"}, table);
    page.close_details();
  }
}

void share_headline(const Scan& scan, SharePage& page) {
  const std::string counted = analysis::counted_findings(scan.findings);
  if (!counted.empty()) {
    page.heading(1, {{fmt::format("kshim scan: {}", counted)}});
  } else if (scan.incomplete()) {
    page.heading(1, {{"kshim scan: incomplete"}});
  } else if (scan.objects.empty()) {
    page.heading(1, {{"kshim scan: no device code"}});
  } else {
    page.heading(1, {{scan.targets.empty() && !scan.held ? "kshim scan" : "kshim scan: ok"}});
  }
  std::string text =
      fmt::format("{} ({}) looked at, {} with device code.", analysis::counted(scan.files, "file"),
                  size_text(scan.bytes), scan.objects.size());
  page.paragraph({{std::move(text)}});
}

}  // namespace

void share_scan(const Scan& dirty, bool full, SharePage& page) {
  const Scan scan = for_sharing(dirty, full);
  share_headline(scan, page);
  analysis::share_contents(scan.findings, page);
  auto rows = matrix_rows(scan, false);
  const bool single = rows.size() <= page.limits().rows;
  if (!single) {
    rows = matrix_rows(scan, true);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MatrixRow& a, const MatrixRow& b) { return a.bytes > b.bytes; });
  }
  const std::size_t shown = std::min(rows.size(), page.limits().rows);
  share_expected(scan, page);
  if (!rows.empty()) {
    share_targets(scan, rows, single, shown, page);
    share_architectures(rows, shown, page);
  }
  share_findings(scan.findings, page);
  share_sizes(scan, page);
  share_kernels(scan, page);
  if (!scan.notes.empty()) {
    page.heading(2, {{"Notes"}});
    analysis::share_list(scan.notes, false, page);
  }
  analysis::share_footer(page);
}

}  // namespace kshim::scan
