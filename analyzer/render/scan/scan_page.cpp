// SPDX-License-Identifier: Apache-2.0
// The scan for people: what is wrong on top, then what each file is built for, then the totals.
#include "analyzer/render/answer.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/scan/render.h"

namespace kshim::render {
using core::counted;
using core::join;
using core::mapped;
using core::shorten;
using core::size_text;
using core::Tone;
using device_code::ImageCount;
using verbs::ScannedKernel;
using verbs::ScannedObject;

namespace {

struct SizeRow {
  std::string name;          ///< "sm_90a"; a file with the offset of a module in it; a kernel, demangled
  std::uint64_t bytes = 0;   ///< as stored in the file; of a kernel its machine code
  std::uint64_t clear = 0;   ///< uncompressed; 0 where that says nothing
  std::uint64_t images = 0;  ///< of a kernel: architectures
  std::string more = {};     ///< of a module: its first kernel
};

struct SizeTable {
  const char* what;                ///< "architecture", "module", "kernel"
  std::vector<SizeRow> rows = {};  ///< the largest first
  std::uint64_t total = 0;         ///< of `bytes`, those of rows that are left out too
};

/// The tables that have rows, each with `most` rows at most but the first, which has all.
std::vector<SizeTable> size_tables(const verbs::Scan& scan, std::size_t most) {
  SizeTable archs{.what = "architecture"};
  SizeTable modules{.what = "module"};
  SizeTable kernels{.what = "kernel"};
  std::map<std::pair<bool, std::string>, SizeRow> by_arch;
  std::map<std::string, SizeRow> by_kernel;
  for (const ScannedObject& object : scan.objects) {
    for (const ImageCount& row : object.images) {
      const std::string arch = name(row.candidate.kind, row.candidate.arch);
      SizeRow& sum = by_arch[{row.candidate.kind != image::ImageKind::cubin, arch}];
      sum.name = arch;
      sum.bytes += row.stored;
      sum.clear += row.bytes;
      sum.images += row.count;
    }
    for (const verbs::ModuleSize& module : object.largest)
      modules.rows.push_back({fmt::format("{}+{}", core::basename_of(object.name()), module.offset),
                              module.stored, module.bytes, module.images, core::demangle(module.kernel)});
    if (!object.kernels) continue;
    for (const ScannedKernel& kernel : *object.kernels) {
      SizeRow& sum = by_kernel[kernel.name];
      if (sum.name.empty()) sum.name = kernel.demangled;
      for (const verbs::KernelNeeds& image : kernel.images)
        sum.bytes += image.code_bytes, sum.images += image.code_bytes != 0;
    }
  }
  for (auto& [key, row] : by_arch) archs.rows.push_back(std::move(row));
  for (auto& [key, row] : by_kernel) kernels.total += row.bytes, kernels.rows.push_back(std::move(row));
  for (const SizeRow& row : archs.rows) archs.total += row.bytes;
  modules.total = archs.total;
  std::vector<SizeTable> out;
  for (SizeTable* table : {&archs, &modules, &kernels}) {
    std::ranges::stable_sort(table->rows, std::greater(), &SizeRow::bytes);
    if (table != &archs) table->rows.resize(std::min(table->rows.size(), most));
    if (!table->rows.empty()) out.push_back(std::move(*table));
  }
  return out;
}

/// "12 %"
std::string share_text(std::uint64_t part, std::uint64_t all) {
  return fmt::format("{:.0f} %",
                     all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

using image::ImageKind;

constexpr std::size_t kFindings = 12;
constexpr std::size_t kNamedKernels = 3;

std::string name_of(image::Arch arch) { return sm_name(arch); }

/// "SP": SASS and PTX; or in words.
Line kinds_cell(const MatrixRow& row, image::Arch arch, bool letters) {
  std::vector<std::string> kinds;
  for (const auto& [kind, name] :
       {std::pair{ImageKind::cubin, "SASS"}, std::pair{ImageKind::ptx, "PTX"},
        std::pair{ImageKind::ltoir, "LTO-IR"}, std::pair{ImageKind::tileir, "Tile IR"}}) {
    const bool has = std::ranges::any_of(row.images, [&, k = kind](const auto& image) {
      return image.candidate.kind == k && image.candidate.arch == arch;
    });
    if (has) kinds.push_back(letters ? std::string(name, 1) : name);
  }
  if (kinds.empty() && letters) return {{".", Tone::dim}};
  return {{join(kinds, letters ? "" : ", ")}};
}

/// Whether it has code for GPUs in general, and not for one or its family alone (sm_90a, sm_100f).
bool is_general(const MatrixRow& row) {
  return std::ranges::any_of(
      row.images, [](const ImageCount& image) { return image.candidate.arch.suffix == image::Suffix::none; });
}

/// One word of a column.
Line verdict_word(const RowVerdict& verdict) {
  if (verdict.mixed())
    return {{fmt::format("{}/{}", verdict.files - verdict.files_none, verdict.files), Tone::warning}};
  const std::string word(to_name(verdict.worst));
  switch (verdict.worst) {
    case Outcome::none:
      return {{word, Tone::error}};
    case Outcome::part:
      return {{word, Tone::warning}};
    case Outcome::jit:
      return {{word}};
    case Outcome::sass:
      return {{word, Tone::good}};
    case Outcome::no_kernels:
      break;
  }
  return {{"-", Tone::dim}};
}

/// A mark and what it means.
Line marked(bool good, const std::string& text) {
  return text.empty() ? Line{mark(good)} : Line{mark(good), {" "}, {text}};
}

Line verdict_cell(const RowVerdict& verdict, std::size_t files) {
  const std::string modules = counted(verdict.sass + verdict.jit + verdict.lacking, "module");
  if (verdict.mixed())
    return {{fmt::format("{} of {} files; {} built for other GPUs only", verdict.files - verdict.files_none,
                         verdict.files,
                         verdict.files_none == 1 ? "1 is" : fmt::format("{} are", verdict.files_none))}};
  switch (verdict.worst) {
    case Outcome::none:
      return marked(false, files == 1 ? "nothing runs" : "nothing runs of any file");
    case Outcome::part:
      if (verdict.lacking == 0)
        return marked(false,
                      fmt::format("{} without code", counted(verdict.kernels_lacking.value_or(0), "kernel")));
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
  return {{"no kernels", Tone::dim}};
}

/// Numbers of findings by the file and the GPU that they are about.
class FindingNumbers {
 public:
  explicit FindingNumbers(const std::vector<core::Finding>& findings) : findings_(findings) {
    for (std::size_t i = 0; i < findings.size(); ++i)
      for (std::string& target : targets_of(findings[i]))
        numbers_.try_emplace({findings[i].object, std::move(target)}, i + 1);
  }
  /// The cell, led to the finding that says why.
  Line linked(Line cell, const ScannedObject& object, image::Arch target) const {
    const auto found = numbers_.find({object.name(), name_of({target.cc, image::Suffix::none})});
    if (found == numbers_.end() || cell.empty()) return cell;
    cell.back().finding = found->second;
    if (cell.back().hover.empty()) cell.back().hover = title_sentence(findings_[found->second - 1]);
    return cell;
  }

 private:
  const std::vector<core::Finding>& findings_;
  std::map<std::pair<std::string, std::string>, std::size_t> numbers_;
};

struct ScanWriter {
  void write() {
    headline();
    write_checks(scan_.checks, doc_);
    if (!doc_.terminal()) {
      write_contents(scan_.findings, {}, doc_);
      expected();
    }
    findings();
    if (!doc_.terminal()) tables();
    write_fleet(scan_.fleet, doc_);
    if (doc_.terminal()) tables();
    if (scan_.sizes) sizes();
    if (!scan_.sizes || !doc_.terminal()) kernels();
    budgets();
    totals();
    auto notes = mapped(all_notes(scan_), [](const input::ReadNote& note) { return Note{note.text()}; });
    for (const std::string& note : scan_.newer) notes.push_back({note});
    if (!scan_.companions.empty())
      notes.push_back(
          {fmt::format("it needs other packages with kernels, which `kshim scan NAME==VERSION` reads: {}",
                       join(scan_.companions, ", "))});
    doc_.notes(notes);
  }

  void headline() {
    const std::string found = counted_findings(scan_.findings);
    doc_.title(!found.empty()                         ? "kshim scan: " + found
               : scan_.incomplete()                   ? "kshim scan: incomplete"
               : scan_.objects.empty()                ? "kshim scan: no device code"
               : scan_.targets.empty() && !scan_.held ? "kshim scan"
                                                      : "kshim scan: ok",
               about());
    const bool problems = std::ranges::any_of(scan_.findings, core::is_problem);
    if (scan_.incomplete() && (!problems || scan_.objects.empty())) {
      // Never "ok": what was not read was not judged.
      doc_.say(Tone::warning, "incomplete:",
               fmt::format("{} could not be read and {} not judged: see the notes below",
                           counted(scan_.notes.size() + scan_.unread.size(), "place"),
                           scan_.notes.size() + scan_.unread.size() == 1 ? "is" : "are"));
    } else if (scan_.objects.empty()) {
      doc_.say(Tone::strong, "no device code:", fmt::format("in {}", counted(scan_.files, "file")));
    } else if (scan_.held && !problems) {
      const auto rules =
          static_cast<std::size_t>(std::ranges::count_if(scan_.objects, [](const ScannedObject& object) {
            return object.expected && !object.expected->reason.empty();
          }));
      std::string text =
          fmt::format("{} with device code, as expected", counted(scan_.objects.size(), "file"));
      if (rules != 0)
        text += fmt::format(", {} by {} for such files", rules, rules == 1 ? "a rule" : "rules");
      doc_.say(Tone::good, "ok:", text);
    } else if (!scan_.targets.empty() && !problems) {
      doc_.say(Tone::good, "ok:",
               fmt::format("{} with device code, no problem on {}", counted(scan_.objects.size(), "file"),
                           core::enumerate(mapped(scan_.targets, name_of))));
    }
  }

  /// What was read, and for which GPUs and driver.
  std::vector<std::string> about() const {
    std::vector<std::string> out = scan_.paths;
    out.resize(shown_of(scan_.paths.size(), 3));
    if (out.size() < scan_.paths.size())
      out.push_back(fmt::format("and {} more", scan_.paths.size() - out.size()));
    if (!scan_.targets.empty()) out.push_back("for " + join(mapped(scan_.targets, name_of), " "));
    if (scan_.driver.known()) out.push_back(fmt::format("driver for CUDA {}", name(scan_.driver)));
    return out;
  }

  void findings() {
    if (!doc_.brief()) return write_findings(scan_.findings, doc_);
    // The most severe come first; anything but a problem is left to --verbose.
    const auto total = static_cast<std::size_t>(std::ranges::count_if(scan_.findings, core::is_problem));
    if (total == 0) return;
    if (total == 1) return write_answer(scan_.findings.front(), 1, {}, doc_);
    // Most findings of one scan are one finding about many files: a line each, and the first with all there
    // is to it.
    std::vector<std::pair<std::string_view, std::string>> lines;
    for (const core::Finding& finding : std::span(scan_.findings).first(total))
      lines.emplace_back(kind_of(finding), title_of(finding));
    const std::size_t shown = scan_.held ? lines.size() : shown_of(lines.size(), kFindings);
    const std::size_t more = lines.size() - shown;
    lines.resize(shown);
    if (shown > 1) doc_.contents({}, std::move(lines));
    if (more != 0) doc_.paragraph({{fmt::format("and {} more: --verbose shows them", more)}});
    write_answer(scan_.findings.front(), 1, {}, doc_);
  }

  void expected() {
    std::vector<Row> table;
    for (const ScannedObject& object : scan_.objects) {
      if (!object.expected) continue;
      const verbs::Expected& expected = *object.expected;
      table.push_back({{code(object.name())},
                       marked(expected.met(), expected.skipped ? "left out" : expected.list),
                       {{join(expected.missing, ", ")}},
                       {{join(expected.surplus, ", ")}},
                       {{expected.reason}}});
    }
    if (!scan_.held || table.empty()) return;
    doc_.heading(2, {{"Expected"}});
    doc_.table({"File", "Expected", "Missing", "Too much", "Reason"}, std::move(table));
  }

  void sizes() {
    constexpr std::size_t kBrief = 10;
    for (const SizeTable& size : size_tables(scan_, doc_.brief() ? kBrief : doc_.limits().rows)) {
      std::vector<Row> table;
      for (const SizeRow& row : size.rows)
        table.push_back(
            {{code(shorten(row.name, doc_.limits().columns))},
             {{size_text(row.bytes), Tone::number}},
             {{share_text(row.bytes, size.total)}},
             {{row.clear == 0 ? "" : counted(row.images, "image")}},
             {{row.clear == 0 || row.clear == row.bytes ? "" : size_text(row.clear) + " unpacked"}},
             {{shorten(row.more, doc_.limits().columns)}}});
      doc_.heading(
          2, {{fmt::format("bytes by {}: {}{}", size.what, size_text(size.total),
                           std::string_view(size.what) == "kernel" ? " of machine code" : " as stored")}});
      doc_.table({size.what, "Bytes", "Share", "Images", "Unpacked", ""}, std::move(table));
    }
  }

  void budgets() {
    // Of each budget, the one that comes nearest to it.
    std::map<std::string, double> most;
    const auto share = [](const verbs::BudgetUse& use) {
      return static_cast<double>(use.bytes) / static_cast<double>(use.limit);
    };
    for (const verbs::BudgetUse& use : scan_.budget) most[use.of] = std::max(most[use.of], share(use));
    for (const verbs::BudgetUse& use : scan_.budget)
      if (!doc_.brief() || share(use) >= most[use.of])
        doc_.paragraph({{fmt::format("budget of {}: {} of {} ({}) {}", use.of, size_text(use.bytes),
                                     size_text(use.limit), share_text(use.bytes, use.limit), use.name)}});
  }

  /// One object a row, unless there are too many: then one package, those that somebody asked for first.
  void tables() {
    rows_ = matrix_rows(scan_, false);
    const bool single = shown_of(rows_.size(), doc_.limits().rows) == rows_.size();
    if (!single) {
      rows_ = matrix_rows(scan_, true);
      std::ranges::stable_sort(rows_, std::greater(),
                               [](const MatrixRow& row) { return std::tuple(row.requested, row.modules); });
    }
    if (rows_.empty()) return;
    for (const MatrixRow& row : rows_)
      for (const ImageCount& image : row.images) archs_.insert(image.candidate.arch);
    if (doc_.terminal()) return matrix();
    runs_on(single);
    built_for();
  }

  // Files by architectures in letters, and how they do on the targets in a word.
  void matrix() {
    std::vector<std::string> head = {""};
    for (const image::Arch arch : archs_) head.push_back(name_of(arch).substr(3));
    if (!scan_.targets.empty()) head.emplace_back("|");
    for (const image::Arch target : scan_.targets) head.push_back(name_of(target));
    const auto special = std::stable_partition(rows_.begin(), rows_.end(), is_general);
    const MatrixRow* first_special = special == rows_.begin() || special == rows_.end() ? nullptr : &*special;
    std::vector<Row> table;
    for (const MatrixRow& row : rows_) {
      if (&row == first_special) table.push_back({{{"for one GPU or family alone:"}}});
      Row cells = {{{row.name}}};
      for (const image::Arch arch : archs_) cells.push_back(kinds_cell(row, arch, true));
      if (!row.targets.empty()) cells.push_back({{"|"}});
      for (const RowVerdict& verdict : row.targets) cells.push_back(verdict_word(verdict));
      table.push_back(std::move(cells));
    }
    doc_.table(std::move(head), std::move(table));
  }

  /// `single`: each row is one object of the scan, in its order.
  void runs_on(bool single) {
    if (scan_.targets.empty()) return;
    const FindingNumbers numbers(scan_.findings);
    std::vector<std::string> head = {"File"};
    for (const image::Arch target : scan_.targets) head.push_back(name_of(target));
    std::vector<Row> table;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Row cells = {{code(rows_[i].name)}};
      for (const RowVerdict& verdict : rows_[i].targets) {
        Line cell = verdict_cell(verdict, rows_[i].files);
        if (doc_.has_links()) {
          std::string told;
          for (const Span& span : std::exchange(cell, verdict_word(verdict))) told += span.text;
          cell.back().hover = std::move(told);
        }
        cells.push_back(single ? numbers.linked(std::move(cell), scan_.objects[i], verdict.target) : cell);
      }
      table.push_back(std::move(cells));
    }
    doc_.heading(2, {{"Runs on"}});
    doc_.table(std::move(head), std::move(table));
    if (doc_.has_links()) doc_.paragraph({{verdict_legend(has(ImageKind::ltoir)), Tone::dim}});
  }

  void built_for() {
    std::vector<std::string> head = {"File", "Size"};
    for (const image::Arch arch : archs_)
      head.push_back(name(arch.cc) + name_of(arch).substr(name_of({arch.cc, {}}).size()));
    std::vector<Row> table;
    for (const MatrixRow& row : rows_) {
      Row cells = {{code(row.name)}, {{size_text(row.bytes), Tone::number}}};
      for (const image::Arch arch : archs_) cells.push_back(kinds_cell(row, arch, doc_.has_links()));
      table.push_back(std::move(cells));
    }
    doc_.heading(2, {{"Built for"}});
    doc_.table(std::move(head), std::move(table));
    if (doc_.has_links()) doc_.paragraph({{kinds_legend(), Tone::dim}});
  }

  void kernels() {
    std::size_t room = doc_.limits().kernels;
    for (const ScannedObject& object : scan_.objects) {
      if (!object.kernels || object.kernels->empty()) continue;
      if (doc_.terminal()) {
        kernel_groups(object);
        continue;
      }
      if (room == 0)
        return doc_.paragraph(
            {{"Kernels of further files are left out: "}, code("--format json"), {" has them all."}});
      doc_.heading(2, {{"Kernels of "}, code(object.name())});
      doc_.open_details(counted(object.kernels->size(), "kernel"));
      std::vector<Row> table;
      for (const ScannedKernel& kernel : *object.kernels) {
        if (room == 0) break;
        --room;
        table.push_back(
            {{code(shorten(kernel.demangled, doc_.limits().columns))}, {{join(kernel.archs(), ", ")}}});
      }
      doc_.table({"Kernel", "In images for"}, std::move(table));
      doc_.close_details();
    }
  }

  // Kernels of one file, grouped by the architectures that they have: what differs from the rest is the news.
  void kernel_groups(const ScannedObject& object) {
    constexpr unsigned kIndent = 11;
    std::map<std::vector<std::string>, std::vector<const ScannedKernel*>> groups;
    for (const ScannedKernel& kernel : *object.kernels) groups[kernel.archs()].push_back(&kernel);
    auto order = mapped(groups, [](const auto& group) { return &group; });
    std::ranges::stable_sort(order, [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
    doc_.heading(2, {{fmt::format("{}: {}", object.name(), counted(object.kernels->size(), "kernel"))}});
    for (const auto* group : order) {
      const auto& [archs, kernels] = *group;
      doc_.paragraph({{fmt::format("{:>7}  {}", kernels.size(), join(archs, " "))}}, 2, 9);
      const std::size_t most = !doc_.brief()       ? kernels.size()
                               : order.size() == 1 ? 0
                                                   : std::min(kNamedKernels, kernels.size());
      for (const ScannedKernel* kernel : std::span(kernels).first(most))
        doc_.paragraph({{shorten(kernel->demangled, doc_.limits().columns)}}, kIndent, 2);
      if (most != 0 && most < kernels.size())
        doc_.paragraph({{fmt::format("and {} more", kernels.size() - most)}}, kIndent);
    }
  }

  void totals() {
    std::uint64_t fatbins = 0;
    std::uint64_t images = 0;
    for (const ScannedObject& object : scan_.objects) {
      fatbins += object.fatbins;
      for (const ImageCount& row : object.images) images += row.count;
    }
    doc_.gap();
    doc_.paragraph({{fmt::format(
        "{} ({}){}: {} with device code, {}, {}", counted(scan_.files, "file"), size_text(scan_.bytes),
        scan_.duplicates == 0 ? "" : fmt::format(" and {} to them", counted(scan_.duplicates, "link")),
        scan_.objects.size(), counted(fatbins, "fatbin"), counted(images, "image"))}});
    for (const verbs::ScannedImage& image : scan_.images)
      doc_.paragraph({{fmt::format(
          "{}: image {}{}{}, {}", image.path, image.name.empty() ? "without a name" : image.name,
          image.platform.empty() ? "" : " for " + image.platform,
          image.base.empty() ? "" : " on " + image.base, counted(image.layers, "layer"))}});
    if (!doc_.terminal() || scan_.objects.empty()) return;
    std::string legend = kinds_legend();
    if (!scan_.targets.empty()) legend += "; " + verdict_legend(has(ImageKind::ltoir));
    doc_.paragraph({{std::move(legend), Tone::dim}});
  }

  bool has(ImageKind kind) const {
    return std::ranges::any_of(scan_.objects, [&](const ScannedObject& object) {
      return std::ranges::any_of(object.images,
                                 [&](const ImageCount& row) { return row.candidate.kind == kind; });
    });
  }

  std::string kinds_legend() const {
    std::string out = "S = SASS (cubin), P = PTX";
    if (has(ImageKind::ltoir)) out += ", L = LTO-IR";
    if (has(ImageKind::tileir)) out += ", T = Tile IR";
    return out;
  }

  /// What the words of the targets' columns mean, as far as they are there.
  std::string verdict_legend(bool ltoir) const {
    std::string out =
        "ok = runs as SASS, jit = some or all is compiled from PTX at load, part = some kernels lack code, "
        "none = nothing runs, - = no kernels";
    if (ltoir) out += " (LTO-IR alone runs nothing)";
    const auto picks = [](const diagnose::TargetVerdict& verdict) {
      return verdict.picks && verdict.lacking != 0 && !verdict.nothing_fits();
    };
    if (std::ranges::any_of(scan_.objects, [&](const ScannedObject& object) {
          return std::ranges::any_of(object.targets, picks);
        }))
      out += "; a library that picks its code by GPU is ok with the modules it has for that GPU";
    if (std::ranges::any_of(rows_, [](const MatrixRow& row) { return row.files > 1; }))
      out += "; 4/9 = something runs of 4 of 9 files, the others are built for other GPUs only";
    return out;
  }

  const verbs::Scan& scan_;
  Document& doc_;
  std::vector<MatrixRow> rows_ = {};
  std::set<image::Arch> archs_ = {};
};

}  // namespace

std::string render_page(const verbs::Scan& scan, Format format, const RenderOptions& options) {
  return write_document(format, "kshim scan", options, {}, [&](Document& document) {
    ScanWriter{scan, document}.write();
  });
}

}  // namespace kshim::render
