// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/files_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/core/text.h"
#include "analyzer/render/finding_text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kArchs = 24;
constexpr std::size_t kDevices = 12;

struct FileRow {
  std::map<std::string, Line> archs;
  std::map<std::string, Line> devices;
};

// sm_75 before sm_120 before compute_75.
std::tuple<std::string, std::size_t, std::string> arch_order(const std::string& arch) {
  const std::size_t digits = std::min(arch.find_first_of("0123456789"), arch.size());
  const std::string kind = arch.substr(0, digits);
  return {kind == "sm_" ? "" : kind, arch.size(), arch};
}

std::string reason_text(const ImageVerdict& image) {
  std::string text = image.kind == "ptx" ? "PTX" : image.kind;
  if (!image.isa.empty()) text += " " + image.isa;
  return image.reason.empty() ? text : text + ": " + image.reason;
}

class Matrix {
 public:
  void add(const Finding& finding, std::size_t number) {
    if (finding.object.empty() || (finding.images.empty() && finding.have.empty())) return;
    const auto [at, added] = rows_.try_emplace(finding.object);
    if (added) order_.push_back(finding.object);
    FileRow& row = at->second;
    for (const ImageVerdict& image : finding.images) {
      Span cell = mark(image.fits);
      cell.hover = reason_text(image);
      cell.finding = number;
      add_once(archs_, image.arch);
      row.archs.try_emplace(image.arch, Line{std::move(cell)});
    }
    if (finding.images.empty()) {
      for (const std::string& arch : finding.have) {
        add_once(archs_, arch);
        row.archs.try_emplace(arch, Line{{"built for", Tone::plain, {}, number}});
      }
    }
    for (const Device& about : finding.devices) {
      const std::string device = text_of(about);
      add_once(devices_, device);
      Line& cell = row.devices[device];
      if (!cell.empty()) cell.push_back({", "});
      cell.push_back({std::string(row_of(finding.cause).name),
                      finding.severity == Severity::error ? Tone::error : Tone::plain,
                      title_sentence(finding), number});
    }
  }

  bool is_worth_it() const { return order_.size() > 1 || devices_.size() > 1; }
  bool empty() const { return order_.empty(); }

  void write(Document& document) {
    std::sort(archs_.begin(), archs_.end(),
              [](const std::string& a, const std::string& b) { return arch_order(a) < arch_order(b); });
    const std::size_t archs = std::min(archs_.size(), kArchs);
    const std::size_t devices = std::min(devices_.size(), kDevices);
    std::vector<std::string> head = {"File"};
    for (std::size_t i = 0; i < devices; ++i) head.push_back(devices_[i]);
    for (std::size_t i = 0; i < archs; ++i) head.push_back(archs_[i]);
    std::vector<Row> table;
    for (const std::string& file : order_) {
      const FileRow& row = rows_.at(file);
      Row cells = {{code(file)}};
      for (std::size_t k = 0; k < devices; ++k) cells.push_back(cell_of(row.devices, devices_[k], "-"));
      for (std::size_t k = 0; k < archs; ++k) cells.push_back(cell_of(row.archs, archs_[k], ""));
      table.push_back(std::move(cells));
    }
    document.heading(2, {{"Files and GPUs"}});
    std::string legend =
        "What became of each file with a finding on each GPU, what it is built for, and whether that fits "
        "there.";
    if (archs < archs_.size() || devices < devices_.size())
      legend += fmt::format(" {} further architectures and {} further GPUs are left out.",
                            archs_.size() - archs, devices_.size() - devices);
    document.paragraph({{std::move(legend)}});
    document.table(std::move(head), std::move(table));
  }

 private:
  static void add_once(std::vector<std::string>& list, const std::string& text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  }
  static Line cell_of(const std::map<std::string, Line>& cells, const std::string& name, const char* none) {
    const auto found = cells.find(name);
    return found == cells.end() ? Line{{none, Tone::dim}} : found->second;
  }

  std::map<std::string, FileRow> rows_;
  std::vector<std::string> order_;
  std::vector<std::string> archs_;
  std::vector<std::string> devices_;
};

}  // namespace

void write_files_table(std::span<const Finding> findings, bool always, Document& document) {
  Matrix matrix;
  for (std::size_t i = 0; i < findings.size(); ++i) matrix.add(findings[i], i + 1);
  if (!matrix.empty() && (always || matrix.is_worth_it())) matrix.write(document);
}

}  // namespace kshim::analysis
