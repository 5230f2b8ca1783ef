// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share_finding.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/render/finding_text.h"

namespace kshim::analysis {
namespace {

constexpr double kSure = 0.9;
constexpr std::size_t kInline = 3;  // longer lists of kernels are folded away
constexpr const char* kYes = "\u2713";
constexpr const char* kNo = "\u2717";

using Rows = std::vector<std::vector<Line>>;

void fact(Rows& rows, const char* name, Line text) {
  if (text.empty() || (text.size() == 1 && text.front().text.empty())) return;
  rows.push_back({{{name}}, std::move(text)});
}

// "0: NVIDIA A100 (8.0)": the row's name says GPU.
std::string gpu_text(const Device& device) {
  std::string text = text_of(device);
  if (device.kind == Device::Kind::present && device.ordinal) text.erase(0, std::string_view("GPU ").size());
  return text;
}

Line call_line(const Finding& finding) {
  Line out;
  if (!finding.failed_call.empty()) out.push_back(code(finding.failed_call));
  if (finding.code) {
    if (!out.empty()) out.push_back({" returned "});
    out.push_back(
        code(fmt::format("{}{}{}", *finding.code, finding.code_name.empty() ? "" : " ", finding.code_name)));
  }
  if (const std::string often = how_often(finding); !often.empty() && !out.empty()) out.push_back({often});
  return out;
}

std::string image_kind(const ImageVerdict& image) {
  if (image.kind != "ptx") return image.kind;
  return image.isa.empty() ? "PTX" : "PTX " + image.isa;
}

std::vector<std::string> kernels_of(const Finding& finding) {
  std::vector<std::string> out;
  if (!finding.failed_kernel.empty()) out.push_back(finding.failed_kernel);
  for (const std::string& kernel : finding.kernels) {
    if (kernel != finding.failed_kernel) out.push_back(kernel);
  }
  return out;
}

std::string shown(const std::string& name, const SharePage& page) {
  return shorten(name, page.limits().columns);
}

void share_facts(const Finding& finding, const std::vector<std::string>& kernels, SharePage& page) {
  Rows rows;
  const std::size_t devices = std::min(finding.devices.size(), page.limits().rows);
  for (std::size_t i = 0; i < devices; ++i) fact(rows, i == 0 ? "GPU" : "", {{gpu_text(finding.devices[i])}});
  fact(rows, "Seen in", {{finding.seen_in}});
  fact(rows, "File", {code(finding.object)});
  fact(rows, "Package", {{finding.package.text()}});
  fact(rows, "Call", call_line(finding));
  if (!finding.where.empty()) fact(rows, "Where", {code(place_text(finding.where.front()))});
  for (std::size_t i = 0; i < kernels.size() && kernels.size() <= kInline; ++i)
    fact(rows, i == 0 ? "Kernel" : "", {code(shown(kernels[i], page))});
  if (!finding.kernel_source.file.empty())
    fact(rows, "Defined at", {code(place_text(finding.kernel_source))});
  if (kernels.size() > kInline) {
    const std::uint64_t total = std::max<std::uint64_t>(finding.kernels_total, kernels.size());
    fact(rows, "Kernels",
         {code(shown(kernels.front(), page)),
          {fmt::format(" and {} more{}", total - 1, finding.kernels_complete ? "" : ", perhaps others")}});
  }
  if (finding.images.empty()) fact(rows, "Built for", {{join(finding.have, ", ")}});
  fact(rows, "Needed", {{finding.need}});
  const std::string sure = finding.confidence < kSure && !counts(finding)
                               ? fmt::format(" ({:.0f} % sure)", finding.confidence * 100)
                               : "";
  fact(rows, "Cause", {code(std::string(row_of(finding.cause).name)), {sure}});
  page.table({}, rows);
}

void share_images(const Finding& finding, SharePage& page) {
  Rows rows;
  const std::size_t most = std::min(finding.images.size(), page.limits().rows);
  for (std::size_t i = 0; i < most; ++i) {
    const ImageVerdict& image = finding.images[i];
    rows.push_back({{{image_kind(image)}},
                    {code(image.arch)},
                    {{std::to_string(image.count), Style::number}},
                    {image.fits ? Span{kYes, Style::good} : Span{kNo, Style::bad}},
                    {{image.reason}}});
  }
  if (finding.images.size() > most)
    rows.push_back({{{fmt::format("and {} more", finding.images.size() - most)}}, {}, {}, {}, {}});
  page.table({"Image", "For", "Count", "Fits", "Why"}, rows);
}

void share_details(const Finding& finding, const std::vector<std::string>& kernels, SharePage& page) {
  if (kernels.size() > kInline) {
    page.open_details(counted(kernels.size(), "kernel"));
    std::vector<std::string> names;
    for (const std::string& kernel : kernels) names.push_back(shown(kernel, page));
    share_list(names, true, page);
    page.close_details();
  }
  if (finding.where.size() > 1) {
    page.open_details("Stack, innermost first");
    std::vector<std::string> frames;
    for (const Place& place : finding.where) frames.push_back(place_text(place));
    share_list(frames, true, page);
    page.close_details();
  }
  if (finding.evidence.empty()) return;
  page.open_details("Evidence");
  std::vector<Line> items;
  const std::size_t most = std::min(finding.evidence.size(), page.limits().rows);
  for (std::size_t i = 0; i < most; ++i) {
    Line item = {{finding.evidence[i].text}};
    if (!finding.evidence[i].at.empty()) {
      item.push_back({" "});
      item.push_back(code(finding.evidence[i].at.text()));
    }
    items.push_back(std::move(item));
  }
  if (finding.evidence.size() > most)
    items.push_back({{fmt::format("and {} more", finding.evidence.size() - most)}});
  page.list(items);
  page.close_details();
}

std::string_view kind_of(const Finding& finding) {
  return finding.severity == Severity::info ? std::string_view("note") : to_name(finding.severity);
}

}  // namespace

std::string counted_findings(std::span<const Finding> findings) {
  std::vector<std::string> parts;
  for (const auto& [severity, noun] :
       {std::pair{Severity::error, "error"}, std::pair{Severity::warning, "warning"}}) {
    const auto n = std::count_if(findings.begin(), findings.end(),
                                 [s = severity](const Finding& finding) { return finding.severity == s; });
    if (n != 0) parts.push_back(counted(static_cast<std::uint64_t>(n), noun));
  }
  return enumerate(parts);
}

std::string message_text(const Finding& finding) {
  std::string text = title_sentence(finding);
  for (const Fix& fix : finding.fixes) {
    text += fmt::format("\n{}: {}", &fix == finding.fixes.data() ? "Fix" : "Or", fix.title);
    for (const std::string& command : fix.commands) text += "\n    " + command;
  }
  return text;
}

void share_list(const std::vector<std::string>& items, bool as_code, SharePage& page) {
  std::vector<Line> lines;
  const std::size_t most = std::min(items.size(), page.limits().rows);
  for (std::size_t i = 0; i < most; ++i) lines.push_back({{items[i], as_code ? Style::code : Style::plain}});
  if (items.size() > most) lines.push_back({{fmt::format("and {} more", items.size() - most)}});
  page.list(lines);
}

namespace {

void share_fix(const Finding& finding, std::size_t i, SharePage& page) {
  const Fix& fix = finding.fixes[i];
  page.heading(3, {{fmt::format("{}: {}", i == 0 ? "Fix" : "Or", fix.title)}});
  page.commands(fix.commands);
  const bool shared = i != 0 && fix.why == finding.fixes[i - 1].why;
  if (!fix.why.empty() && !shared) page.paragraph({{as_sentence(fix.why)}});
  if (!fix.caveat.empty()) page.paragraph({strong("Note:"), {" " + as_sentence(fix.caveat)}});
}

void share_other_fixes(const Finding& finding, SharePage& page) {
  for (std::size_t i = 1; i < finding.fixes.size(); ++i) share_fix(finding, i, page);
  if (!finding.dead_ends.empty()) {
    page.heading(3, {{"Will not help"}});
    std::vector<Line> items;
    for (const DeadEnd& end : finding.dead_ends) items.push_back({strong(end.action), {": " + end.why}});
    page.list(items);
  }
}

}  // namespace

void share_fixes(const Finding& finding, SharePage& page) {
  if (!finding.fixes.empty()) share_fix(finding, 0, page);
  share_other_fixes(finding, page);
}

void share_finding_body(const Finding& finding, SharePage& page) {
  const std::vector<std::string> kernels = kernels_of(finding);
  if (!finding.fixes.empty()) share_fix(finding, 0, page);
  share_facts(finding, kernels, page);
  share_images(finding, page);
  if (!finding.remarks.empty()) page.paragraph({{join(finding.remarks, " ")}});
  share_other_fixes(finding, page);
  share_details(finding, kernels, page);
}

void share_contents(std::span<const Finding> findings, SharePage& page) {
  std::vector<std::pair<std::string_view, std::string>> contents;
  for (const Finding& finding : findings.first(std::min(findings.size(), page.limits().findings)))
    contents.emplace_back(kind_of(finding), title_of(finding));
  if (contents.size() > 1) page.contents(contents);
}

void share_findings(std::span<const Finding> findings, SharePage& page) {
  const std::size_t most = std::min(findings.size(), page.limits().findings);
  for (std::size_t i = 0; i < most; ++i) {
    page.open_finding(i + 1, kind_of(findings[i]), title_of(findings[i]));
    share_finding_body(findings[i], page);
    page.close_finding();
  }
  if (findings.size() > most)
    page.paragraph({{fmt::format("And {}: ", counted(findings.size() - most, "more finding"))},
                    code("--format json"),
                    {" has them all."}});
}

}  // namespace kshim::analysis
