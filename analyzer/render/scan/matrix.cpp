// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/core/text.h"
#include "analyzer/render/scan/name_cell.h"

namespace kshim::scan {
namespace {

using analysis::ImageCount;
using analysis::Page;
using analysis::Tone;
using image::ImageKind;

constexpr std::size_t kNarrowestName = 16;

/// "90a": an architecture without sm_ or compute_, for the head of a column.
std::string number_of(image::Arch arch) {
  const auto name = image::to_name(ImageKind::cubin, arch);
  return std::string(name.view().substr(name.view().find('_') + 1));
}

std::vector<image::Arch> columns_of(const std::vector<MatrixRow>& rows) {
  std::vector<image::Arch> out;
  for (const MatrixRow& row : rows) {
    for (const ImageCount& image : row.images) out.push_back(image.candidate.arch);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// "SP": SASS and PTX.
std::string cell(const MatrixRow& row, image::Arch arch) {
  std::array<bool, 4> has{};
  for (const ImageCount& image : row.images) {
    if (image.candidate.arch == arch) has[static_cast<std::size_t>(image.candidate.kind)] = true;
  }
  std::string out;
  if (has[static_cast<std::size_t>(ImageKind::cubin)]) out += 'S';
  if (has[static_cast<std::size_t>(ImageKind::ptx)]) out += 'P';
  if (has[static_cast<std::size_t>(ImageKind::ltoir)]) out += 'L';
  if (has[static_cast<std::size_t>(ImageKind::tileir)]) out += 'T';
  return out.empty() ? "." : out;
}

struct Word {
  std::string text;
  Tone tone = Tone::plain;
};

Word word_of(const RowVerdict& verdict) {
  if (verdict.mixed())
    return {fmt::format("{}/{}", verdict.files - verdict.files_none, verdict.files), Tone::warning};
  switch (verdict.worst) {
    case Outcome::none:
      return {"none", Tone::error};
    case Outcome::part:
      return {"part", Tone::warning};
    case Outcome::jit:
      return {"jit", Tone::plain};
    case Outcome::sass:
      return {"ok", Tone::good};
    case Outcome::no_kernels:
      break;
  }
  return {"-", Tone::dim};
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t wide = analysis::columns(text);
  return wide < width ? std::string(width - wide, ' ') + text : text;
}

class Matrix {
 public:
  Matrix(const Scan& scan, const std::vector<MatrixRow>& rows, std::size_t shown, std::size_t page_width,
         Page& page)
      : scan_(scan), rows_(rows), shown_(shown), page_width_(page_width), page_(page) {
    const auto archs = columns_of(rows);
    for (const image::Arch arch : archs) {
      Column column{arch, number_of(arch), 0};
      column.width = column.head.size();
      for (std::size_t i = 0; i < shown; ++i)
        column.width = std::max(column.width, cell(rows[i], arch).size());
      width_ += column.width + 1;
      columns_.push_back(std::move(column));
    }
    for (const image::Arch target : scan.targets)
      target_width_ += 1 + std::max<std::size_t>(4, number_of(target).size() + 3);
    if (target_width_ != 0) target_width_ += 2;
    for (std::size_t i = 0; i < shown; ++i) name_ = std::max(name_, terminal_columns(rows[i].name));
    name_ = std::max(name_, kNarrowestName);
  }

  void print() {
    const std::size_t room = page_width_ > width_ + target_width_ ? page_width_ - width_ - target_width_ : 0;
    if (room < kNarrowestName) return print_list();
    name_ = std::min(name_, room);
    std::string head(name_, ' ');
    for (const Column& column : columns_) head += " " + padded(column.head, column.width);
    if (!scan_.targets.empty()) head += " |";
    for (const image::Arch target : scan_.targets)
      head += " " + padded(target_head(target), target_column(target));
    page_.line(page_.paint(Tone::strong, head));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < shown_; ++i) names.push_back(rows_[i].name);
    names = name_cells(names, name_);
    for (std::size_t i = 0; i < shown_; ++i) print_row(rows_[i], std::move(names[i]));
  }

 private:
  struct Column {
    image::Arch arch;
    std::string head;
    std::size_t width;
  };

  static std::string target_head(image::Arch target) { return "sm_" + number_of(target); }
  static std::size_t target_column(image::Arch target) {
    return std::max<std::size_t>(4, target_head(target).size());
  }

  void print_row(const MatrixRow& row, std::string line) {
    line.append(name_ - std::min(name_, terminal_columns(line)), ' ');
    for (const Column& column : columns_) {
      const std::string text = cell(row, column.arch);
      line += ' ';
      line += text == "." ? page_.paint(Tone::dim, padded(text, column.width)) : padded(text, column.width);
    }
    if (!row.targets.empty()) line += " |";
    for (const RowVerdict& verdict : row.targets) {
      const Word word = word_of(verdict);
      line += ' ' + page_.paint(word.tone, padded(word.text, target_column(verdict.target)));
    }
    page_.line(std::move(line));
  }

  // Where the columns do not fit, each file has its own lines.
  void print_list() {
    for (std::size_t i = 0; i < shown_; ++i) {
      const MatrixRow& row = rows_[i];
      page_.line(page_.paint(Tone::strong, row.name));
      std::string text;
      for (const Column& column : columns_) {
        const std::string has = cell(row, column.arch);
        if (has != ".") text += fmt::format("{}{}:{}", text.empty() ? "" : "  ", column.head, has);
      }
      // A page's own paragraphs may be wider than the terminal.
      page_.line("  " + analysis::fill(text, page_width_, 2));
      for (const RowVerdict& verdict : row.targets) {
        const Word word = word_of(verdict);
        page_.line("  " +
                   page_.paint(word.tone, fmt::format("{}: {}", target_head(verdict.target), word.text)));
      }
    }
  }

  const Scan& scan_;
  const std::vector<MatrixRow>& rows_;
  std::size_t shown_;
  std::size_t page_width_;
  Page& page_;
  std::vector<Column> columns_;
  std::size_t width_ = 0;
  std::size_t target_width_ = 0;
  std::size_t name_ = 0;
};

}  // namespace

void print_matrix(const Scan& scan, std::vector<MatrixRow> rows, std::size_t most, std::size_t width,
                  Page& page) {
  if (rows.empty()) return;
  // "and 1 more" takes as much room as that one.
  const std::size_t shown = rows.size() <= most + 1 ? rows.size() : most;
  if (shown < rows.size()) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MatrixRow& a, const MatrixRow& b) { return a.bytes > b.bytes; });
  }
  page.blank();
  Matrix(scan, rows, shown, width, page).print();
  if (shown < rows.size())
    page.line(page.paint(Tone::dim, fmt::format("and {} more, smaller ones", rows.size() - shown)));
}

}  // namespace kshim::scan
