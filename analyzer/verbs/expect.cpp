// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/expect.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "analyzer/core/text.h"

namespace kshim::verbs {
using core::basename_of;
using core::enumerate;
using core::Finding;

namespace {

namespace fs = std::filesystem;
using image::ImageKind;

ArchList list_of(const ScannedObject& object) {
  std::set<Entry> out;
  for (const device_code::ImageCount& row : object.images)
    out.insert({row.candidate.kind, row.candidate.arch});
  return {out.begin(), out.end()};
}

template <class File>
bool matches(const Rule& rule, const File& file) {
  const std::string& path = file.member.empty() ? file.path : file.member;
  const bool whole = core::contains(rule.pattern, '/');
  return ::fnmatch(rule.pattern.c_str(), whole ? path.c_str() : std::string(basename_of(path)).c_str(), 0) ==
         0;
}

Finding unmet(std::string headline, std::string advice, const std::string& source) {
  Finding finding;
  finding.cause = core::Cause::unmet_expectation;
  finding.confidence = 1;
  finding.headline = std::move(headline);
  finding.evidence.push_back({core::EvidenceId::expected,
                              fmt::format("The expected architectures come from {}.", source),
                              {},
                              {{"source", source}}});
  if (!advice.empty())
    finding.fixes.push_back(
        {.title = std::move(advice), .commands = {}, .why = {}, .caveat = {}, .id = "as-expected"});
  return finding;
}

// Of what a file is to have, as the form has it: each element one of several entries that would do.
std::vector<ArchList> wanted_of(const Rule& rule) {
  const Form form = rule.form.value_or(Form::written);
  std::set<ArchList> out;
  for (const Entry& entry : rule.list) {
    const Entry sass{ImageKind::cubin, entry.arch};
    const Entry ptx{ImageKind::ptx, entry.arch};
    out.insert(form == Form::sass     ? ArchList{sass}
               : form == Form::ptx    ? ArchList{ptx}
               : form == Form::either ? ArchList{ptx, sass}
                                      : ArchList{entry});
  }
  return {out.begin(), out.end()};
}

bool has_floor(const ScannedObject& object, image::ComputeCapability floor) {
  return std::ranges::any_of(object.images, [&](const device_code::ImageCount& row) {
    return row.candidate.kind == ImageKind::ptx && row.candidate.arch.suffix == image::Suffix::none &&
           row.candidate.arch.cc <= floor;
  });
}

Expected judge_object(const ScannedObject& object, const Rule& rule) {
  Expected out{
      .list = to_text(rule.list), .source = rule.source, .reason = rule.reason, .skipped = rule.skip};
  if (rule.skip) return out;
  const ArchList have = list_of(object);
  const auto has = [&](const Entry& entry) { return std::ranges::binary_search(have, entry); };
  std::set<Entry> asked;
  for (const ArchList& choices : wanted_of(rule)) {
    asked.insert(choices.begin(), choices.end());
    if (!std::ranges::any_of(choices, has)) out.missing.push_back(core::join(names_of(choices), " or "));
  }
  if (rule.ptx_floor && !has_floor(object, *rule.ptx_floor))
    out.missing.push_back(fmt::format("PTX for GPUs from {} on", name(*rule.ptx_floor)));
  if (!rule.exactly.value_or(false)) return out;
  ArchList surplus;
  std::set_difference(have.begin(), have.end(), asked.begin(), asked.end(), std::back_inserter(surplus));
  if (rule.ptx_floor)  // asked for by its own
    std::erase_if(surplus, [&](const Entry& entry) {
      return entry.kind == ImageKind::ptx && entry.arch.cc <= *rule.ptx_floor;
    });
  out.surplus = names_of(surplus);
  return out;
}

Finding finding_of(const ScannedObject& object) {
  const Expected& expected = *object.expected;
  std::string what;
  std::string advice;
  if (!expected.missing.empty()) {
    what = "lacks " + enumerate(expected.missing);
    advice = "Build it for " + enumerate(expected.missing);
  }
  if (!expected.surplus.empty()) {
    what += fmt::format("{}has extra code for {}", what.empty() ? "" : "; ", enumerate(expected.surplus));
    advice +=
        fmt::format("{} {}", advice.empty() ? "Build it without" : ", without", enumerate(expected.surplus));
  }
  Finding finding =
      unmet(fmt::format("{} {}", basename_of(object.name()), what),
            fmt::format("{}, or change the expectation in {}.", advice, expected.source), expected.source);
  finding.object = object.name();
  finding.build_id = object.build_id;
  finding.package = object.package;
  finding.have = names_of(list_of(object));
  return finding;
}

void hold_files(Scan& scan, const Expectation& expectation) {
  std::vector<bool> matched(expectation.files.size());
  for (ScannedObject& object : scan.objects) {
    const Rule* rule = nullptr;
    for (std::size_t i = 0; i < expectation.files.size(); ++i) {
      if (!matches(expectation.files[i], object)) continue;
      matched[i] = true;
      rule = &expectation.files[i];
    }
    if (rule == nullptr) rule = &expectation.all;
    if (rule->list.empty() && !rule->ptx_floor && !rule->skip) continue;  // a budget alone
    object.expected = judge_object(object, *rule);
    if (!object.expected->met()) scan.findings.push_back(finding_of(object));
  }
  // A file that is left out need not be read.
  std::erase_if(scan.unread, [&](const UnreadFile& file) {
    const Rule* rule = nullptr;
    for (std::size_t i = 0; i < expectation.files.size(); ++i) {
      if (!matches(expectation.files[i], file)) continue;
      if (expectation.files[i].skip) matched[i] = true;
      rule = &expectation.files[i];
    }
    return rule != nullptr && rule->skip;
  });
  for (std::size_t i = 0; i < matched.size(); ++i)
    if (!matched[i])
      scan.findings.push_back(
          unmet(fmt::format("no file with device code is called {}", expectation.files[i].pattern),
                fmt::format("Build the file, or remove the rule from {}.", expectation.files[i].source),
                expectation.files[i].source));
}

/// What was named on the command line and holds no device code is not as expected, whatever lies beside it.
void hold_paths(Scan& scan, const std::string& source, const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    const std::string name = path.string();
    const bool unread = core::contains(core::mapped(scan.notes, &input::ReadNote::place), name);
    std::error_code error;
    const bool folder = fs::is_directory(path, error);
    if (unread && !folder) continue;  // said, and fails by itself
    const bool found = std::ranges::any_of(scan.objects, [&](const ScannedObject& object) {
      return object.path == name ||
             (folder && object.path.starts_with(name.ends_with('/') ? name : name + '/')) ||
             (!folder && fs::equivalent(object.path, path, error));
    });
    if (found) continue;
    Finding finding =
        unmet(fmt::format("{} has no device code",
                          basename_of(name.ends_with('/') ? name.substr(0, name.size() - 1) : name)),
              "Build it with CUDA, or name the path that has what was built.", source);
    finding.object = name;
    scan.findings.push_back(std::move(finding));
  }
}

void hold_budget(Scan& scan, const std::vector<Limit>& budget, const std::string& source) {
  std::set<std::string> wheels;
  for (const ScannedObject& object : scan.objects) wheels.insert(object.path);
  const auto add = [&](const std::string& name, std::string headline, std::string remark) {
    Finding finding = unmet(std::move(headline), std::move(remark), source);
    finding.object = name;
    scan.findings.push_back(std::move(finding));
  };
  const auto check = [&](const std::string& name, const Limit& limit, std::uint64_t bytes) {
    scan.budget.push_back({name, std::string(limit.text()), bytes, limit.bytes});
    if (bytes <= limit.bytes) return;
    add(name,
        fmt::format("{} takes {}, {} more than its budget of {}", basename_of(name), core::size_text(bytes),
                    core::size_text(bytes - limit.bytes), core::size_text(limit.bytes)),
        fmt::format("Build for fewer architectures (the table below says what takes most), or raise the "
                    "budget of {}.",
                    source));
    scan.sizes = true;
  };
  const auto check_whole = [&](const std::string& path, const Limit& limit) {
    const auto known = scan.file_bytes.find(path);
    if (known != scan.file_bytes.end()) return check(path, limit, known->second);
    add(path, fmt::format("the size of {} is not known, and it has a budget", basename_of(path)),
        "Name the wheel itself, or leave its budget out.");
  };
  for (const Limit& limit : budget) {
    if (limit.of == Limit::Of::file)
      for (const ScannedObject& object : scan.objects) check(object.name(), limit, object.bytes);
    else
      for (const std::string& path : wheels) check_whole(path, limit);
  }
}

}  // namespace

std::string_view Limit::text() const { return of == Of::file ? "file" : "wheel"; }

void hold(Scan& scan, const Expectation& expectation, const std::vector<fs::path>& paths) {
  std::error_code error;
  const bool empty = scan.files == 0 && std::ranges::any_of(paths, [&](const fs::path& path) {
                       return fs::is_directory(path, error);
                     });
  if (scan.nothing_readable && !empty) return;
  scan.held = true;
  scan.nothing_readable = false;
  hold_files(scan, expectation);
  hold_paths(scan, expectation.all.source, paths);
  hold_budget(scan, expectation.budget, expectation.all.source);
}

}  // namespace kshim::verbs
