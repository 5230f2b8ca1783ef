// SPDX-License-Identifier: Apache-2.0
// The analysis for people: the most important line first; on a terminal one screen, which people paste into
// issues.
#include "analyzer/diagnose/merge.h"
#include "analyzer/render/answer.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/render.h"
#include "analyzer/render/sentences.h"
#include "analyzer/render/share.h"

namespace kshim::render {
using core::Tone;
using verbs::ProcessSummary;

namespace {

constexpr std::size_t kArchs = 24;
constexpr std::size_t kListedDevices = 12;

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

std::string reason_text(const core::ImageVerdict& image) {
  std::string text = image.kind == "ptx" ? "PTX" : image.kind;
  if (!image.isa.empty()) text += " " + image.isa;
  return image.reason.empty() ? text : text + ": " + image.reason;
}

/// The files that findings are about, by what they are built for and by GPUs: each cell says what is wrong,
/// and where on the page the reason stands.
class Matrix {
 public:
  void add(const core::Finding& finding, std::size_t number) {
    if (finding.object.empty() || (finding.images.empty() && finding.have.empty())) return;
    const auto [at, added] = rows_.try_emplace(finding.object);
    if (added) order_.push_back(finding.object);
    FileRow& row = at->second;
    for (const core::ImageVerdict& image : finding.images) {
      Span cell = mark(image.fits);
      cell.hover = reason_text(image);
      cell.finding = number;
      add_once(archs_, image.arch);
      row.archs.try_emplace(image.arch, Line{std::move(cell)});
    }
    for (const std::string& arch : finding.images.empty() ? finding.have : std::vector<std::string>()) {
      add_once(archs_, arch);
      row.archs.try_emplace(arch, Line{{"built for", Tone::plain, {}, number}});
    }
    for (const core::Device& about : finding.devices) {
      const std::string device = text_of(about);
      add_once(devices_, device);
      Line& cell = row.devices[device];
      if (!cell.empty()) cell.push_back({", "});
      cell.push_back({std::string(row_of(finding.cause).name),
                      finding.severity == core::Severity::error ? Tone::error : Tone::plain,
                      title_sentence(finding), number});
    }
  }

  /// Nothing where one finding says it all, unless `always`.
  void write(bool always, Document& document) {
    if (order_.empty() || (!always && order_.size() < 2 && devices_.size() < 2)) return;
    std::ranges::sort(archs_, {}, arch_order);
    const std::size_t archs = std::min(archs_.size(), kArchs);
    const std::size_t devices = std::min(devices_.size(), kListedDevices);
    std::vector<std::string> head = {"File"};
    for (const auto& shown : {std::span(devices_).first(devices), std::span(archs_).first(archs)})
      head.insert(head.end(), shown.begin(), shown.end());
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
    if (!core::contains(list, text)) list.push_back(text);
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

// What to name on a command line to read the same reports again.
std::string reports_path(const verbs::Analysis& analysis) {
  const auto typed = [](const std::string& path, const char* otherwise) {
    const std::string word = core::shell_quote(path);
    return word.front() == core::kNoShellWord ? std::string(otherwise) : word;
  };
  if (analysis.processes.size() == 1) return typed(analysis.processes.front().report, "REPORT");
  std::string folder;
  for (const ProcessSummary& process : analysis.processes) {
    const std::string own = process.report.substr(0, process.report.rfind('/') + 1);
    if (!folder.empty() && folder != own) return "REPORTS";
    folder = own;
  }
  return folder.empty() ? "." : typed(folder, "REPORTS");
}

struct AnalysisWriter {
  void write() {
    headline();
    const bool terminal = doc_.terminal();
    problems_ = static_cast<std::size_t>(std::ranges::count_if(analysis_.findings, core::is_problem));
    if (doc_.brief()) {
      answers();
    } else {
      if (!terminal || problems_ > 1) contents();
      findings();
    }
    Matrix matrix;
    for (std::size_t i = 0; !terminal && i < analysis_.findings.size(); ++i)
      matrix.add(analysis_.findings[i], i + 1);
    matrix.write(doc_.has_links(), doc_);
    write_fleet(analysis_.fleet, doc_);
    if (doc_.brief() && problems_ != 0) {
      if (!analysis_.processes.empty())
        doc_.more("More:", "kshim analyze -v " + reports_path(analysis_));
      else if (!analysis_.again.empty())
        doc_.more("More:", analysis_.again);
    }
    if (!terminal && !(analysis_.devices.empty() && analysis_.processes.empty())) {
      doc_.heading(2, {{"Environment"}});
      devices();
      processes();
    }
    std::vector<Note> notes;
    for (const diagnose::BlindProcess& process : analysis_.blind)
      notes.push_back({fmt::format("{} (pid {}): {}", process.exe, process.pid, process.reason),
                       "not watched:", Tone::warning});
    for (const std::string& note : analysis_.notes) notes.push_back({note});
    doc_.notes(notes);
  }

  void headline() {
    const std::string counted = counted_findings(analysis_.findings);
    const VerdictLine verdict = verdict_line(analysis_);
    const std::string name(to_name(analysis_.verdict));
    doc_.title("kshim: " + (verdict.head.empty() && !counted.empty() ? counted : name), about());
    if (!verdict.head.empty()) {
      doc_.say(verdict.tone, verdict.head, verdict.text);
      if (!counted.empty() && !doc_.terminal()) doc_.paragraph({{fmt::format("Also {}.", counted)}});
    }
    // The sentence may have the ending; on a screen an error explains a status, and no signal.
    const bool said =
        !verdict.head.empty() && (analysis_.verdict == verbs::Verdict::failure ||
                                  (analysis_.verdict == verbs::Verdict::incomplete && analysis_.term_signal));
    const bool explained =
        doc_.terminal() && !analysis_.term_signal && worst(analysis_) == core::Severity::error;
    if (said || explained || !analysis_.failed()) return;
    doc_.gap();
    doc_.say(Tone::strong, "note:",
             analysis_.term_signal
                 ? fmt::format("the program was ended by signal {}", *analysis_.term_signal)
                 : fmt::format("the program exited with status {}{}", *analysis_.exit_status, exception()));
  }

  std::string exception() const {
    const verbs::LastWords& last = analysis_.last_words;
    return last.exception && analysis_.findings.empty() ? ": " + last.line : std::string();
  }

  /// The program, its GPUs and their driver.
  std::vector<std::string> about() const {
    std::vector<std::string> out;
    if (analysis_.processes.size() == 1) {
      const ProcessSummary& process = analysis_.processes.front();
      const auto arguments = program_and_script(process.argv);
      out.push_back(arguments.empty() ? process.exe : core::join(arguments, " "));
    } else if (!analysis_.processes.empty()) {
      out.push_back(fmt::format("{} processes", analysis_.processes.size()));
    }
    const auto add = [&](std::string text) {
      if (!core::contains(out, text)) out.push_back(std::move(text));
    };
    for (const verbs::DeviceSummary& device : analysis_.devices) {
      add(device.cc ? fmt::format("{} ({})", device.name, image::to_name(*device.cc).view()) : device.name);
      if (!device.driver_cuda.empty()) add(fmt::format("driver for CUDA {}", device.driver_cuda));
    }
    constexpr std::size_t kMax = 8;
    out.resize(std::min(out.size(), kMax));
    return out;
  }

  void contents() {
    std::string head = counted_findings(analysis_.findings);
    if (analysis_.processes.size() > 1) head += fmt::format(" in {} processes", analysis_.processes.size());
    write_contents(analysis_.findings, head, doc_);
  }

  void answers() {
    write_answers(analysis_.findings, {}, doc_);
    if (analysis_.other) {
      doc_.gap();
      write_answer(outside_cuda(*analysis_.other), 1, {}, doc_);
    }
    // Beside a problem nothing else is worth a line; how such libraries work never is.
    for (const core::Finding& finding : analysis_.findings) {
      if (problems_ != 0 || finding.is_by_design || finding.cause == core::Cause::benign_probe) continue;
      doc_.gap();
      doc_.say(Tone::strong, "note:", title_of(finding));
    }
  }

  void findings() {
    const std::size_t most = std::min(analysis_.findings.size(), doc_.limits().findings);
    bool apart = false;
    for (std::size_t i = 0; i < most; ++i) {
      const core::Finding& finding = analysis_.findings[i];
      if (i != 0 && !apart && diagnose::is_hypothetical(finding)) {
        apart = true;
        doc_.heading(2, {{"What would fail on the targets; nothing of it has failed yet"}});
      }
      write_finding(finding, i + 1, doc_);
    }
    write_left_out(analysis_.findings.size() - most, "more finding", doc_);
  }

  void devices() {
    std::vector<Row> rows;
    for (const verbs::DeviceSummary& device : analysis_.devices)
      rows.push_back({{{std::to_string(device.ordinal), Tone::number}},
                      {{device.name}},
                      {{device.cc ? std::string(image::to_name(*device.cc).view()) : "?"}},
                      {{device.driver_cuda}},
                      {{device.kernel_module}},
                      {code(device.uuid)},
                      {code(device.host)}});
    doc_.table({"GPU", "Name", "Compute capability", "Driver serves CUDA", "Driver", "UUID", "Host"},
               std::move(rows));
  }

  void processes() {
    std::vector<Row> rows;
    for (const ProcessSummary& process : analysis_.processes) {
      const auto arguments = full_ ? process.argv : program_and_script(process.argv);
      rows.push_back({{{std::to_string(process.pid), Tone::number}},
                      {{process.rank ? std::to_string(*process.rank) : ""}},
                      {code(arguments.empty() ? process.exe : core::join(arguments, " "))},
                      {{std::to_string(process.modules), Tone::number}},
                      {{std::to_string(process.failures), Tone::number}},
                      {code(process.report)},
                      {{process.complete ? "" : "no end"}}});
    }
    doc_.table({"Process", "Rank", "Command", "Modules", "Failures", "Report", ""}, std::move(rows));
  }

  const verbs::Analysis& analysis_;
  bool full_;
  Document& doc_;
  std::size_t problems_ = 0;  ///< of the findings
};

}  // namespace

std::string render_page(const verbs::Analysis& analysis, Format format, const RenderOptions& options) {
  std::vector<std::string> hosts = core::mapped(analysis.processes, &ProcessSummary::host);
  for (const verbs::DeviceSummary& device : analysis.devices) hosts.push_back(device.host);
  return write_document(format, "kshim", options, std::move(hosts), [&](Document& document) {
    AnalysisWriter{analysis, options.full, document}.write();
  });
}

}  // namespace kshim::render
