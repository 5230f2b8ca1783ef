// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/finding_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "analyzer/core/text.h"
#include "analyzer/owner/python_distributions.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kKernels = 3;
constexpr std::size_t kImages = 10;
constexpr std::size_t kEvidence = 3;
constexpr std::size_t kSharedEvidence = 2;
constexpr std::size_t kSharedFixes = 2;
constexpr std::size_t kPlaces = 2;
constexpr std::size_t kDevices = 4;
constexpr std::size_t kDeadEnds = 4;
constexpr double kSure = 0.9;
constexpr double kLikely = 0.6;  // below, the title says "probably"

std::string_view title_pattern(const Finding& finding) {
  // What was said of this one finding tells more than what is said of all of its cause.
  if (!finding.headline.empty()) return finding.headline;
  switch (finding.cause) {
#define KSHIM_TITLE(cause, text) \
  case Cause::cause:             \
    return text;
#include "analyzer/say/titles.def"
#undef KSHIM_TITLE
    default:
      return row_of(finding.cause).headline;
  }
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

// Without the ordinal and the word, which the row below the title has.
std::string gpu_name(const Finding& finding) {
  if (finding.devices.empty()) return "this GPU";
  const Device& device = finding.devices.front();
  std::string name = text_of(device);
  if (device.kind == Device::Kind::present && device.ordinal) name.erase(0, name.find(": ") + 2);
  if (device.kind == Device::Kind::target && device.cc) name.erase(0, name.find(' ') + 1);
  if (const std::size_t more = finding.devices.size() - 1; more != 0)
    name += fmt::format(" and {}", counted(more, "other GPU"));
  return name;
}

// Two of the architectures; of a file with locked code, those that are.
std::vector<std::string> title_have(const Finding& finding) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> have = finding.have;
  if (finding.cause == Cause::arch_specific_image) {
    std::erase_if(have, [](const std::string& arch) { return !arch.ends_with('a') && !arch.ends_with('f'); });
    if (have.empty()) have = finding.have;
  }
  have.resize(std::min(have.size(), kNamed));
  return have;
}

// The kernel's name without its parameters.
std::string kernel_name(std::string_view demangled) {
  constexpr std::size_t kRoom = 50;
  std::string name = shorten(demangled, kRoom);
  if (const std::size_t open = name.find('('); open != std::string::npos && open > 0) name.resize(open);
  return name;
}

std::string file_name(const Finding& finding) {
  if (finding.object.empty()) {
    const bool of_log = !finding.devices.empty() && finding.devices.front().kind == Device::Kind::named;
    return of_log || finding.images.empty() ? "what failed" : "an image in memory";
  }
  std::string name(basename_of(finding.object));
  const std::string package = finding.package.label();
  if (package.empty()) return name;
  const std::string copy = packages::vendored_library(finding.object);
  if (!copy.empty()) return fmt::format("the copy of {} inside {}", copy, package);
  return fmt::format("{} of {}", name, package);
}

void fill_title(const Finding& finding, std::string& text) {
  replace(text, "{file}", file_name(finding));
  replace(text, "{gpu}", gpu_name(finding));
  replace(text, "{have}", enumerate(title_have(finding)));
}

std::size_t limit(std::size_t usual, bool verbose) {
  return verbose ? std::numeric_limits<std::size_t>::max() - 1 : usual;  // + 1 is asked for
}

void print_call(const Finding& finding, Page& page) {
  if (finding.failed_call.empty() && !finding.code) return;
  std::string text = finding.failed_call;
  if (finding.code) {
    if (!text.empty()) text += " returned ";
    text += fmt::format("{}{}{}", *finding.code, finding.code_name.empty() ? "" : " ", finding.code_name);
  }
  page.row("call", text + how_often(finding));
}

// Places as they are shown, each once: without line numbers two calls of one function look the same.
std::vector<std::string> place_rows(const Finding& finding, std::size_t most) {
  std::vector<std::string> rows;
  for (const Place& place : finding.where) {
    std::string row = place_text(place);
    if (rows.size() < most && std::find(rows.begin(), rows.end(), row) == rows.end())
      rows.push_back(std::move(row));
  }
  return rows;
}

// Names as they are shown, each once: instances of one template often differ only in what was cut away.
std::vector<std::string> kernel_rows(const Finding& finding, bool verbose, std::size_t room) {
  std::vector<std::string> rows;
  const auto add = [&](const std::string& name) {
    // The kernel that failed may take two lines.
    std::string row = verbose ? name : shorten(name, rows.empty() ? 2 * room : room);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(std::move(row));
  };
  if (!finding.failed_kernel.empty()) add(finding.failed_kernel);
  for (const std::string& kernel : finding.kernels) add(kernel);
  return rows;
}

void print_kernels(const Finding& finding, bool verbose, Page& page) {
  const auto rows = kernel_rows(finding, verbose, page.width() - kLabelWidth);
  if (rows.empty()) return;
  const std::size_t total =
      std::max<std::size_t>(finding.kernels_total, std::max<std::size_t>(finding.kernels.size(), 1));
  const std::size_t most = limit(kKernels, verbose);
  // "and 1 more" takes as much room as that one.
  const std::size_t shown = rows.size() <= most + 1 ? rows.size() : most;
  for (std::size_t i = 0; i < shown; ++i) {
    page.row(i != 0 ? "" : total == 1 ? "kernel" : "kernels", rows[i]);
    if (i == 0 && !finding.kernel_source.file.empty())
      page.row("", "defined at " + place_text(finding.kernel_source));
  }
  const std::string unsure = finding.kernels_complete ? ""
                             : total > shown          ? ", perhaps others"
                                                      : "and perhaps others";
  if (total > shown) {
    page.row("", fmt::format("and {} more{}", total - shown, unsure));
  } else if (!unsure.empty()) {
    page.row("", unsure);
  }
}

std::string image_name(const ImageVerdict& image) {
  const std::string kind = image.kind != "ptx" ? image.kind : image.isa.empty() ? "PTX" : "PTX " + image.isa;
  return fmt::format("{:<7} {}", kind, image.arch);
}

// What would run is worth saying only where it is known what there is, and none of it would.
bool nothing_near(const Finding& finding) {
  if (finding.images.empty() && finding.have.empty()) return false;
  return std::none_of(finding.images.begin(), finding.images.end(),
                      [](const ImageVerdict& image) { return image.fits || image.would_fit; });
}

void print_images(const Finding& finding, bool verbose, Page& page) {
  std::size_t wide = 0;
  for (const ImageVerdict& image : finding.images) wide = std::max(wide, columns(image_name(image)));
  const std::size_t most = limit(kImages, verbose);
  const std::size_t shown = finding.images.size() <= most ? finding.images.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const ImageVerdict& image = finding.images[i];
    std::string text = image_name(image);
    text.append(wide - columns(text), ' ');
    const std::string_view mark = image.fits ? page.glyph("\u2713", "yes:") : page.glyph("\u2717", "no: ");
    page.cells(i == 0 ? "built for" : "", text, mark, image.fits ? Tone::good : Tone::error, image.reason);
  }
  if (finding.images.size() > shown) page.row("", fmt::format("and {} more", finding.images.size() - shown));
  if (finding.images.empty() && !finding.have.empty()) {
    const bool compiler = finding.cause == Cause::nvrtc_arch_unsupported;
    page.row(compiler ? "compiles" : "built for", join(finding.have, ", "));
  }
  if (!finding.need.empty() && nothing_near(finding)) page.row("needed", finding.need);
}

void print_facts(const Finding& finding, bool verbose, Page& page) {
  const std::size_t devices = std::min(finding.devices.size(), limit(kDevices, verbose));
  for (std::size_t i = 0; i < devices; ++i) {
    const Device& device = finding.devices[i];
    const bool target = device.kind == Device::Kind::target && device.cc;
    std::string text = text_of(device);
    if (target || (device.kind == Device::Kind::present && device.ordinal)) text.erase(0, text.find(' ') + 1);
    page.row(i != 0 ? "" : target ? "target" : "GPU", text);
  }
  if (finding.devices.size() > devices)
    page.row("", fmt::format("and {} more", finding.devices.size() - devices));
  if (!finding.seen_in.empty()) page.row("seen in", finding.seen_in);
  if (!finding.object.empty()) page.row("file", finding.object);
  if (!finding.package.empty()) page.row("package", finding.package.text());
  print_call(finding, page);
  const std::vector<std::string> places = place_rows(finding, limit(kPlaces, verbose));
  for (std::size_t i = 0; i < places.size(); ++i) page.row(i == 0 ? "where" : "", places[i]);
  print_kernels(finding, verbose, page);
  print_images(finding, verbose, page);
}

constexpr unsigned kTextIndent = 2;
constexpr unsigned kCommandIndent = 4;

// `before`: the reason of the fix above, which another way of doing the same shares.
void print_fix(const Fix& fix, std::string_view head, std::string_view before, Page& page) {
  page.blank();
  page.titled(Tone::good, head, fix.title, Tone::strong);
  for (const std::string& command : fix.commands) page.command(command, kCommandIndent);
  if (!fix.why.empty() && fix.why != before) page.paragraph(as_sentence(fix.why), kTextIndent);
  if (!fix.caveat.empty()) page.paragraph(as_sentence("note: " + fix.caveat), kTextIndent);
}

void print_dead_ends(const Finding& finding, bool verbose, Page& page) {
  if (finding.dead_ends.empty()) return;
  page.blank();
  page.line(page.paint(Tone::strong, "Will not help"));
  const std::size_t all = finding.dead_ends.size();
  const std::size_t most = limit(kDeadEnds, verbose);
  const std::size_t shown = all <= most + 1 ? all : most;
  for (std::size_t i = 0; i < shown; ++i) {
    const DeadEnd& end = finding.dead_ends[i];
    page.paragraph(fmt::format("- {}: {}", end.action, end.why), kTextIndent, 2);
  }
  if (all > shown)
    page.paragraph(fmt::format("- and {} more: kshim analyze --verbose", all - shown), kTextIndent, 2);
}

std::string folder_of(std::string_view location) {
  return std::string(location.substr(0, location.rfind('/') + 1));
}

// What a row above says in the same words needs no proof in the text.
std::vector<const Evidence*> telling(const Finding& finding, bool verbose) {
  std::vector<const Evidence*> out;
  for (const Evidence& evidence : finding.evidence) {
    if (verbose || evidence.id != EvidenceId::device) out.push_back(&evidence);
  }
  return out;
}

// Report and line first, so that they can be found at a glance; the folder once, where it is the same for
// all.
void print_evidence(const Finding& finding, std::size_t most, bool verbose, Page& page) {
  const auto rows = telling(finding, verbose);
  if (rows.empty()) return;
  const std::string folder = folder_of(rows.front()->at.file);
  const bool common = std::all_of(rows.begin(), rows.end(), [&](const Evidence* evidence) {
    return evidence->at.empty() || folder_of(evidence->at.file) == folder;
  });
  page.blank();
  page.line(page.paint(Tone::strong, common && !folder.empty() ? "Evidence in " + folder : "Evidence"));
  // "and 1 more" takes as much room as that one.
  const std::size_t shown = rows.size() <= most + 1 ? rows.size() : most;
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string location = rows[i]->at.text();
    const std::string_view place = common ? basename_of(location) : std::string_view(location);
    page.paragraph(fmt::format("{}{}{}", place, place.empty() ? "" : ": ", rows[i]->text), kTextIndent, 2);
  }
  if (rows.size() > shown) page.paragraph(fmt::format("and {} more", rows.size() - shown), kTextIndent);
}

void print_title(const Finding& finding, Page& page) {
  page.blank();
  const std::string head =
      fmt::format("{}:", finding.severity == Severity::info ? "note" : to_name(finding.severity));
  page.titled(tone_of(finding.severity), head, title_of(finding), Tone::strong);
}

}  // namespace

std::string place_text(const Place& place) {
  if (!place.file.empty()) {
    std::string text = place.file;
    if (place.line != 0) text += fmt::format(":{}", place.line);
    if (!place.function.empty()) text += fmt::format(", in {}", shorten(place.function, 60));
    return text;
  }
  if (!place.function.empty()) {
    return fmt::format("{}, in {}", shorten(place.function, 60), basename_of(place.object));
  }
  return fmt::format("{} +0x{:x}", place.object, place.offset);
}

bool counts(const Finding& finding) {
  return finding.cause == Cause::latent_gap && !finding.headline.empty();
}

std::string headline_of(const Finding& finding) {
  if (finding.headline.empty()) return std::string(row_of(finding.cause).headline);
  std::string text = finding.headline;
  fill_title(finding, text);
  return text;
}

std::string how_often(const Finding& finding) {
  std::string text;
  if (finding.call_count > 1) text += fmt::format(", {} times", finding.call_count);
  const std::uint64_t others = finding.count - std::min(finding.count, finding.call_count);
  if (finding.call_count != 0 && others != 0)
    text += fmt::format("; {} with it",
                        others == 1 ? "another call failed" : fmt::format("{} other calls failed", others));
  return text;
}

std::string title_sentence(const Finding& finding) {
  std::string title = title_of(finding);
  const std::string_view file = basename_of(finding.object);
  if (file.empty() || !title.starts_with(file)) return as_sentence(std::move(title));
  return title + '.';
}

Tone tone_of(Severity severity) {
  return severity == Severity::error     ? Tone::error
         : severity == Severity::warning ? Tone::warning
                                         : Tone::strong;
}

std::string title_of(const Finding& finding) {
  std::string text(title_pattern(finding));
  const bool about_file = text.find("{file}") != std::string::npos;
  fill_title(finding, text);
  const std::string& kernel = !finding.failed_kernel.empty() || finding.kernels.empty()
                                  ? finding.failed_kernel
                                  : finding.kernels.front();
  const bool sure = finding.confidence >= kLikely;
  const bool failed = finding.code || !finding.failed_call.empty();
  if (failed && !kernel.empty() && about_file && finding.severity == Severity::error) {
    return fmt::format("kernel {} cannot run{} {}", kernel_name(kernel), sure ? ":" : ", probably because",
                       text);
  }
  // Which libraries are there is seen; what is not sure is that they are the cause.
  const bool seen = finding.cause == Cause::mixed_cuda_libraries || finding.cause == Cause::cudnn_mismatch;
  return sure || counts(finding) || seen || finding.cause == Cause::unknown ? text : "probably " + text;
}

void print_finding(const Finding& finding, Detail detail, Page& page) {
  print_title(finding, page);
  if (detail == Detail::brief) {
    if (!finding.seen_in.empty()) page.row("seen in", finding.seen_in);
    if (!finding.where.empty()) page.row("where", place_text(finding.where.front()));
    if (!finding.fixes.empty()) print_fix(finding.fixes.front(), "Fix:", {}, page);
    return;
  }
  const bool verbose = detail == Detail::everything;
  const bool shared = detail == Detail::shared;
  // What to do stands under what is wrong; what proves it comes after.
  if (!finding.fixes.empty()) print_fix(finding.fixes.front(), "Fix:", {}, page);
  page.blank();
  print_facts(finding, verbose, page);
  std::string cause(row_of(finding.cause).name);
  if (finding.confidence < kSure && !counts(finding))
    cause += fmt::format(" ({:.0f} % sure)", finding.confidence * 100);
  page.row("cause", cause);
  if (!finding.remarks.empty()) page.row("", join(finding.remarks, " "));
  const std::size_t fixes = std::min(finding.fixes.size(), shared ? kSharedFixes : finding.fixes.size());
  for (std::size_t i = 1; i < fixes; ++i) print_fix(finding.fixes[i], "Or:", finding.fixes[i - 1].why, page);
  if (!shared) print_dead_ends(finding, verbose, page);
  print_evidence(finding, limit(shared ? kSharedEvidence : kEvidence, verbose), verbose, page);
}

}  // namespace kshim::analysis
