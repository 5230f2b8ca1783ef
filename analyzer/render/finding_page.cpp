// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/finding_page.h"

#include <unordered_set>

#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/places.h"
#include "analyzer/owner/databases.h"
#include "analyzer/render/sentences.h"

namespace kshim::render {
using advise::FleetPlan;
using core::basename_of;
using core::Cause;
using core::contains;
using core::counted;
using core::Device;
using core::enumerate;
using core::Finding;
using core::join;
using core::Severity;
using core::Tone;

namespace {

constexpr double kLikely = 0.6;  // below, the title says "probably"

std::string_view title_pattern(const Finding& finding) {
  // What was said of this one finding tells more than what is said of all of its cause.
  if (!finding.headline.empty()) return finding.headline;
  const core::CauseRow& row = row_of(finding.cause);
  const bool unnamed = finding.cause == Cause::arch_specific_image && finding.have.empty();
  return row.title.empty() || unnamed ? row.headline : row.title;
}

// Without the ordinal and the word, which the row below the title has.
std::string gpu_name(const Finding& finding) {
  if (finding.devices.empty()) return "this GPU";
  if (const auto targets = targets_of(finding); targets.size() > 1) return enumerate(targets);
  const Device& device = finding.devices.front();
  std::string name = text_of(device);
  if (device.kind == Device::Kind::present && device.ordinal) name.erase(0, name.find(": ") + 2);
  if (device.kind == Device::Kind::target && device.cc) name.erase(0, name.find(' ') + 1);
  if (const std::size_t more = finding.devices.size() - 1; more != 0)
    name += fmt::format(" and {}", counted(more, "other GPU"));
  return name;
}

// Two of the architectures; of a file with locked code, the newest that are: sm_120a is the one that a 12.1
// is next to.
std::vector<std::string> title_have(const Finding& finding) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> have = finding.have;
  if (finding.cause == Cause::arch_specific_image) {
    std::erase_if(have, [](const std::string& arch) { return !arch.ends_with('a') && !arch.ends_with('f'); });
    if (have.empty()) have = finding.have;
    if (have.size() > kNamed) have.erase(have.begin(), have.end() - kNamed);
  }
  have.resize(std::min(have.size(), kNamed));
  return have;
}

// The kernel's name without its parameters.
std::string kernel_name(std::string_view demangled) {
  const std::string name = core::shorten(demangled, 50);
  return name.substr(0, name.find('(', 1));
}

// "vllm-openai" and "vLLM", "ComfyUI" and "comfyui".
bool is_alike(std::string_view a, std::string_view b) {
  const auto folded = [](std::string_view name) {
    std::string out;
    for (const char letter : name)
      if (core::is_alnum(letter)) out += core::to_lower(letter);
    return out;
  };
  const std::string first = folded(a);
  const std::string second = folded(b);
  return contains(first, second) || contains(second, first);
}

// The project that a log names as the one that failed, as its makers write it: "PyTorch 2.9.1". Empty: none.
std::string owner_name(const Finding& finding) {
  if (!finding.package.empty()) return finding.package.label();
  if (finding.about == nullptr) return {};
  const diagnose::Facts& about = *finding.about;
  if (about.package.software.empty() && finding.cause == Cause::library_refuses) {
    // What refuses is what says so; many programs say one sentence.
    const auto row = std::ranges::find(data::messages(), about.call.message, &data::MessageRow::id);
    return row == data::messages().end() || row->who == "programs" ? std::string() : std::string(row->who);
  }
  if (about.package.software.empty()) return about.package.project;
  if (about.package.vendored && !about.package.project.empty()) return about.package.project;
  const data::InstallerRow* known = data::find_installer(about.package.software, "pip");
  // Some rows install two projects in one command.
  const bool titled = known != nullptr && !contains(known->title, " and ");
  const std::string_view name = titled ? known->title : std::string_view(about.package.software);
  if (about.package.works)
    return fmt::format("a package beside {}{}{}", name, about.package.version.empty() ? "" : " ",
                       about.package.version);
  const std::string& around = about.package.around;
  const bool within = !around.empty() && !is_alike(around, name) && !is_alike(around, about.package.software);
  return fmt::format("{}{}{}{}{}", name, about.package.version.empty() ? "" : " ", about.package.version,
                     within ? " in " : "", within ? around : "");
}

std::string file_name(const Finding& finding) {
  if (finding.object.empty()) {
    if (finding.cause == Cause::stale_cache_artifact) return "what failed";
    const std::string owner = owner_name(finding);
    if (!owner.empty()) return owner;
    const bool of_log = !finding.devices.empty() && finding.devices.front().kind == Device::Kind::named;
    return of_log || finding.images.empty() ? "the failing program or library" : "an image in memory";
  }
  std::string name(basename_of(finding.object));
  const std::string package = finding.package.label();
  if (package.empty()) return name;
  const std::string copy = owner::vendored_library(finding.object);
  if (!copy.empty()) return fmt::format("the copy of {} inside {}", copy, package);
  return fmt::format("{} of {}", name, package);
}

std::string filled_title(const Finding& finding, std::string_view pattern) {
  const std::string owner = owner_name(finding);
  core::TemplateWords words;
  if (finding.about != nullptr)
    for (const auto& [word, text] : finding.about->call.said) words.emplace_back(word, text);
  words.insert(words.end(), {{"file", file_name(finding)},
                             {"gpu", gpu_name(finding)},
                             {"have", enumerate(title_have(finding))},
                             {"owner", owner.empty() ? "the library itself" : owner}});
  return core::expand(pattern, words);
}

constexpr std::size_t kKernels = 3;  // the others are folded away, where a page can fold
constexpr double kSure = 0.9;

struct FindingWriter {
  /// Of a file that another finding on the page is about, too: the place and the first fix.
  void write_shortly() {
    doc_.facts({{"seen in", {{finding_.seen_in}}}, {"where", first_place()}});
    if (!finding_.fixes.empty()) fix(0);
  }

  void write() {
    // What to do stands under what is wrong; what proves it comes after.
    if (!finding_.fixes.empty()) fix(0);
    doc_.gap();
    devices();
    add("seen in", {{finding_.seen_in}});
    add("file", {code(finding_.object)});
    add("package", {{finding_.package.text()}});
    add("call", call_of(finding_));
    places();
    kernels();
    if (doc_.terminal()) images();
    if (finding_.images.empty())
      add(finding_.cause == Cause::nvrtc_arch_unsupported ? "compiles" : "built for",
          {{join(finding_.have, ", ")}});
    if (targets_of(finding_).size() < 2 && (!doc_.terminal() || nothing_near()))
      add("needed", {{finding_.need}});
    add("cause", {code(std::string(row_of(finding_.cause).name)), {sure()}});
    if (doc_.terminal()) add("", {{join(finding_.remarks, " ")}});
    doc_.facts(std::move(facts_));
    if (!doc_.terminal()) {
      images();
      if (!finding_.remarks.empty()) doc_.paragraph({{join(finding_.remarks, " ")}});
    }
    other_fixes();
    if (!doc_.terminal()) details();
    evidence();
  }

  void fixes() {
    if (!finding_.fixes.empty()) fix(0);
    other_fixes();
  }

  /// A screen that is to have everything.
  bool whole() const { return doc_.terminal() && !doc_.brief(); }
  void add(std::string label, Line text) { facts_.push_back({std::move(label), std::move(text)}); }
  void add_more(std::size_t count, std::string_view unsure = {}) {
    if (count != 0) add("", {{fmt::format("and {} more{}", count, unsure)}});
  }
  Line first_place() const {
    return finding_.where.empty() ? Line() : Line{code(place_text(finding_.where.front()))};
  }
  std::string sure() const {
    if (finding_.confidence >= kSure || counts(finding_)) return {};
    return fmt::format(" ({:.0f} % sure)", finding_.confidence * 100);
  }

  void devices() {
    if (const auto targets = targets_of(finding_); targets.size() > 1)
      return add("targets", {{join(targets, ", ")}});
    const std::size_t shown = shown_of(finding_.devices.size(), doc_.limits().rows);
    for (std::size_t i = 0; i < shown; ++i) {
      const Device& device = finding_.devices[i];
      const bool target = device.kind == Device::Kind::target && device.cc;
      std::string text = text_of(device);
      if (target || (device.kind == Device::Kind::present && device.ordinal))
        text.erase(0, text.find(' ') + 1);
      add(i != 0 ? "" : target ? "target" : "GPU", {{std::move(text)}});
    }
    add_more(finding_.devices.size() - shown);
  }

  // Each once: without line numbers two calls of one function look the same.
  void places() {
    if (!doc_.terminal()) return add("where", first_place());  // all of them are folded away below
    std::vector<std::string> rows;
    for (const core::Place& place : finding_.where) {
      std::string row = place_text(place);
      if (rows.size() < doc_.limits().rows && !contains(rows, row)) rows.push_back(std::move(row));
    }
    for (const std::string& row : rows) add(&row == rows.data() ? "where" : "", {code(row)});
  }

  // Names as they are shown, each once: instances of one template often differ only in what was cut away.
  std::vector<std::string> kernel_rows() const {
    std::vector<std::string> rows;
    std::unordered_set<std::string> known;
    const auto add = [&](const std::string& name) {
      // The kernel that failed may take two lines.
      const std::size_t room = doc_.limits().columns;
      std::string row = whole() ? name : core::shorten(name, rows.empty() ? 2 * room : room);
      if (known.insert(row).second) rows.push_back(std::move(row));
    };
    if (!finding_.failed_kernel.empty()) add(finding_.failed_kernel);
    for (const std::string& kernel : finding_.kernels) add(kernel);
    return rows;
  }

  void kernels() {
    kernels_ = kernel_rows();
    if (kernels_.empty()) return;
    const std::size_t total =
        std::max({std::size_t{finding_.kernels_total}, finding_.kernels.size(), std::size_t{1}});
    const std::size_t shown = shown_of(kernels_.size(), whole() ? kernels_.size() : kKernels);
    for (std::size_t i = 0; i < shown; ++i) {
      add(i != 0 ? "" : total == 1 ? "kernel" : "kernels", {code(kernels_[i])});
      if (i == 0 && !finding_.kernel_source.file.empty())
        add("", {{"defined at "}, code(place_text(finding_.kernel_source))});
    }
    if (total > shown) return add_more(total - shown, finding_.kernels_complete ? "" : ", perhaps others");
    if (!finding_.kernels_complete) add("", {{"and perhaps others"}});
  }

  void images() {
    doc_.facts(std::exchange(facts_, {}));
    std::vector<Row> rows;
    for (const core::ImageVerdict& image : finding_.images) {
      const std::string kind = image.kind != "ptx" ? image.kind
                               : image.isa.empty() ? "PTX"
                                                   : "PTX " + image.isa;
      rows.push_back({{{fmt::format("{:<7}", kind)}},
                      {code(image.arch)},
                      {{std::to_string(image.count), Tone::number}},
                      {mark(image.fits)},
                      {{image.reason}}});
    }
    doc_.table({"Image", "For", "Count", "Fits", "Why"}, std::move(rows), "built for", doc_.limits().rows);
  }

  // What would run is worth saying only where it is known what there is, and none of it would.
  bool nothing_near() const {
    if (finding_.images.empty() && finding_.have.empty()) return false;
    return std::ranges::none_of(
        finding_.images, [](const core::ImageVerdict& image) { return image.fits || image.would_fit; });
  }

  void fix(std::size_t i) {
    const core::Fix& fix = finding_.fixes[i];
    doc_.gap();
    doc_.say(Tone::good, i == 0 ? "Fix:" : "Or:", fix.title, Tone::strong, 3);
    doc_.commands(fix.commands);
    // Another way of doing the same shares the reason.
    const bool same = i != 0 && fix.why == finding_.fixes[i - 1].why;
    if (!fix.why.empty() && !same) doc_.paragraph({{core::as_sentence(fix.why)}}, 2);
    if (!fix.caveat.empty())
      doc_.paragraph({strong("Note:"), {core::as_sentence("note: " + fix.caveat).substr(5)}}, 2);
    std::vector<std::string> assumed;
    for (const core::Assumed what : fix.assumed) assumed.emplace_back(words_of(what));
    if (!assumed.empty())
      doc_.paragraph({strong("Assumed,"), {fmt::format(" as the log does not say: {}.", enumerate(assumed))}},
                     2);
  }

  void other_fixes() {
    for (std::size_t i = 1; i < finding_.fixes.size(); ++i) fix(i);
    if (finding_.dead_ends.empty()) return;
    doc_.heading(3, {{"Will not help"}});
    const std::size_t all = finding_.dead_ends.size();
    const std::size_t shown = shown_of(all, doc_.limits().rows);
    std::vector<Line> items;
    for (const core::DeadEnd& end : std::span(finding_.dead_ends).first(shown))
      items.push_back({strong(end.action), {": " + end.why}});
    if (all > shown) items.push_back({{fmt::format("and {} more: kshim analyze --verbose", all - shown)}});
    doc_.list(std::move(items));
  }

  void fold(const std::string& summary, const std::vector<std::string>& items) {
    doc_.open_details(summary);
    doc_.list(core::mapped(items, [](const std::string& item) { return Line{code(item)}; }));
    doc_.close_details();
  }

  void details() {
    if (kernels_.size() > kKernels + 1) fold(counted(kernels_.size(), "kernel"), kernels_);
    if (finding_.where.size() > 1) fold("Stack, innermost first", core::mapped(finding_.where, place_text));
  }

  // Report and line first, so that they can be found at a glance; the folder once, where it is the same for
  // all.
  void evidence() {
    const std::vector<core::Evidence>& rows = finding_.evidence;
    if (rows.empty()) return;
    const auto folder_of = [](const std::string& file) { return file.substr(0, file.rfind('/') + 1); };
    const std::string folder = folder_of(rows.front().at.file);
    const bool common = std::ranges::all_of(rows, [&](const core::Evidence& evidence) {
      return evidence.at.empty() || folder_of(evidence.at.file) == folder;
    });
    doc_.open_details(common && !folder.empty() ? "Evidence in " + folder : "Evidence");
    std::vector<Line> items;
    for (const core::Evidence& row : rows) {
      const std::string location = row.at.text();
      const std::string place(common ? basename_of(location) : std::string_view(location));
      items.push_back(place.empty() ? Line{{row.text}} : Line{code(place), {": " + row.text}});
    }
    doc_.list(std::move(items));
    doc_.close_details();
  }

  const Finding& finding_;
  Document& doc_;
  std::vector<Fact> facts_ = {};
  std::vector<std::string> kernels_ = {};
};

std::string added_text(const FleetPlan& plan) {
  advise::FleetList added;
  for (const advise::FleetArch& row : plan.smallest.archs)
    if (row.added) added.archs.push_back({row.arch, true, {}});
  return added.archs.empty() ? "adds nothing" : "adds " + list_text(added);
}

// Whether it says more than the fix of the one finding about this file.
bool is_news(const FleetPlan& plan) {
  const auto added =
      std::ranges::count_if(plan.smallest.archs, [](const advise::FleetArch& row) { return row.added; });
  const bool hosts = std::ranges::any_of(
      plan.breaks, [&](const advise::FleetBreak& row) { return row.host != plan.breaks.front().host; });
  const bool shared = std::ranges::any_of(plan.smallest.archs,
                                          [](const advise::FleetArch& row) { return row.serves.size() > 1; });
  return plan.gpus.size() > 1 &&
         (added > 1 || hosts || shared || !plan.compiled.empty() || !plan.unserved.empty());
}

std::vector<Fact> plan_facts(const FleetPlan& plan) {
  std::vector<Fact> rows = {{"file", {code(plan.object)}}, {"lacks", {{names_of(plan.lacking)}}}};
  const auto add = [&](std::string label, std::string text) {
    rows.push_back({std::move(label), {{std::move(text)}}});
  };
  add("breaks on", breaks_text(plan));
  add("smallest",
      fmt::format("{}, and PTX of {}", list_text(plan.smallest), name(image::ImageKind::ptx, plan.ptx)));
  add("", added_text(plan));
  add("toolkit", toolkits_text(plan));
  return rows;
}

}  // namespace

std::vector<std::string> targets_of(const Finding& finding) {
  std::vector<std::string> out;
  for (const Device& device : finding.devices)
    if (device.kind == Device::Kind::target && device.cc) out.push_back(sm_name(*device.cc));
  return out;
}

std::string place_text(const core::Place& place) {
  const std::string function = core::shorten(place.function, 60);
  if (place.file.empty() && function.empty()) return fmt::format("{} +0x{:x}", place.object, place.offset);
  if (place.file.empty()) return fmt::format("{}, in {}", function, basename_of(place.object));
  return core::ReportLine{place.file, place.line}.text() + (function.empty() ? "" : ", in " + function);
}

Line call_of(const Finding& finding) {
  Line out;
  if (!finding.failed_call.empty()) out.push_back(code(diagnose::shown_call(finding.failed_call)));
  if (finding.code) {
    if (!out.empty()) out.push_back({" returned "});
    out.push_back(
        code(fmt::format("{}{}{}", *finding.code, finding.code_name.empty() ? "" : " ", finding.code_name)));
  }
  if (const std::string often = how_often(finding); !often.empty() && !out.empty()) out.push_back({often});
  return out;
}

bool counts(const Finding& finding) {
  return finding.cause == Cause::latent_gap && !finding.headline.empty();
}

std::string headline_of(const Finding& finding) {
  return finding.headline.empty() ? std::string(row_of(finding.cause).headline)
                                  : filled_title(finding, finding.headline);
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
  if (file.empty() || !title.starts_with(file)) return core::as_sentence(std::move(title));
  return title + '.';
}

std::string title_of(const Finding& finding) {
  const std::string_view pattern = title_pattern(finding);
  const std::string text = filled_title(finding, pattern);
  const std::string& kernel = !finding.failed_kernel.empty() || finding.kernels.empty()
                                  ? finding.failed_kernel
                                  : finding.kernels.front();
  const bool sure = finding.confidence >= kLikely;
  const bool failed = finding.code || !finding.failed_call.empty();
  if (failed && !kernel.empty() && core::asks_for(pattern, "file") && finding.severity == Severity::error) {
    return fmt::format("kernel {} cannot run{} {}", kernel_name(kernel), sure ? ":" : ", probably because",
                       text);
  }
  // Which libraries are there is seen; what is not sure is that they are the cause.
  const bool seen = finding.cause == Cause::mixed_cuda_libraries || finding.cause == Cause::cudnn_mismatch;
  return sure || counts(finding) || seen || finding.cause == Cause::unknown ? text : "probably " + text;
}

std::string_view kind_of(const Finding& finding) {
  return finding.severity == Severity::info ? std::string_view("note") : to_name(finding.severity);
}

std::string counted_findings(std::span<const Finding> findings) {
  std::vector<std::string> parts;
  for (const auto& [severity, noun] :
       {std::pair{Severity::error, "error"}, std::pair{Severity::warning, "warning"}}) {
    const auto n = std::ranges::count(findings, severity, &Finding::severity);
    if (n != 0) parts.push_back(counted(static_cast<std::uint64_t>(n), noun));
  }
  return enumerate(parts);
}

std::string message_text(const Finding& finding) {
  std::string text = title_sentence(finding);
  for (const core::Fix& fix : finding.fixes) {
    text += fmt::format("\n{}: {}", &fix == finding.fixes.data() ? "Fix" : "Or", fix.title);
    for (const std::string& command : fix.commands) text += "\n    " + command;
  }
  return text;
}

void write_finding(const Finding& finding, std::size_t number, Document& document) {
  document.open_finding(number, kind_of(finding), title_of(finding));
  FindingWriter{finding, document}.write();
  document.close_finding();
}

void write_fixes(const Finding& finding, Document& document) { FindingWriter{finding, document}.fixes(); }

void write_contents(std::span<const Finding> findings, const std::string& head, Document& document) {
  std::vector<std::pair<std::string_view, std::string>> contents;
  for (const Finding& finding : findings.first(std::min(findings.size(), document.limits().findings)))
    contents.emplace_back(kind_of(finding), title_of(finding));
  if (contents.size() > 1) document.contents(head, std::move(contents));
}

void write_findings(std::span<const Finding> findings, Document& document) {
  const std::size_t shown = std::min(findings.size(), document.limits().findings);
  for (std::size_t i = 0; i < shown;) {
    // A card of a page is about one file: what else is wrong with it comes with its own fix.
    std::size_t end = i + 1;
    while (document.has_links() && end < shown && !findings[i].object.empty() &&
           findings[end].object == findings[i].object)
      ++end;
    std::string title = title_of(findings[i]);
    if (end != i + 1) title += fmt::format(" (and {} more)", end - i - 1);
    document.open_finding(i + 1, kind_of(findings[i]), title);
    FindingWriter{findings[i], document}.write();
    for (++i; i < end; ++i) {
      document.open_finding(i + 1, kind_of(findings[i]), title_of(findings[i]), true);
      FindingWriter{findings[i], document}.write_shortly();
      document.close_finding();
    }
    document.close_finding();
  }
  write_left_out(findings.size() - shown, "more finding", document);
}

void write_left_out(std::size_t count, std::string_view noun, Document& document) {
  if (count == 0) return;
  document.gap();
  document.paragraph(
      {{fmt::format("And {}: ", counted(count, noun))}, code("--format json"), {" has them all."}});
}

void write_fleet(const std::vector<FleetPlan>& all, Document& document) {
  constexpr std::size_t kPlans = 3;
  constexpr std::size_t kSharedPlans = 20;
  std::vector<const FleetPlan*> plans;
  for (const FleetPlan& plan : all)
    if (is_news(plan)) plans.push_back(&plan);
  if (plans.empty()) return;
  document.gap();
  document.say(Tone::strong, "What to build for", names_of(plans.front()->gpus), Tone::plain, 2);
  const std::size_t shown = std::min(plans.size(), document.brief()      ? kPlans
                                                   : document.terminal() ? plans.size()
                                                                         : kSharedPlans);
  for (const FleetPlan* plan : std::span(plans).first(shown)) {
    document.gap();
    document.facts(plan_facts(*plan));
  }
  write_left_out(plans.size() - shown, "more file", document);
}

KSHIM_JSON(advise::FleetArch, arch, added, serves)

KSHIM_JSON(advise::FleetList, archs)

template <>
inline Json to_json(const advise::FleetBreak& from) {
  Json out;
  KSHIM_JSON_FIELDS(host, ordinal, gpu)
  out["compute_capability"] = json_of(from.cc);
  return out;
}

template <>
Json to_json(const FleetPlan& from) {
  Json out;
  KSHIM_JSON_FIELDS(object, build_id, gpus, lacking, smallest)
  const bool any = from.ptx.cc.major != 0;
  out["ptx"] = any ? Json(name(image::ImageKind::ptx, from.ptx)) : Json(nullptr);
  out["cmake"] = json_of(cmake_text(from));
  KSHIM_JSON_FIELDS(toolkits, compiled, unserved)
  out["toolkit_advice"] = toolkits_text(from);
  KSHIM_JSON_FIELDS(breaks, breaks_total)
  return out;
}

}  // namespace kshim::render
