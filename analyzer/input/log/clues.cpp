// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/clues.h"

#include <re2/re2.h>

#include <cctype>

#include "analyzer/data/wheels.h"

namespace kshim::explain {
namespace {

// Everything that uses PyTorch names it: where another package stands beside it, that one is meant.
constexpr std::string_view kCarrier = "torch";

const PackageMention* one_of(const LogFacts& clues, const std::vector<std::string>& names) {
  const PackageMention* carrier = nullptr;
  for (const std::string& name : names) {
    const PackageMention* package = find_package(clues, name);
    if (package == nullptr) continue;
    if (package->name != kCarrier) return package;
    carrier = package;
  }
  return carrier;
}

// ".../site-packages/flash_attn/flash_attn_interface.py": flash_attn.
std::string package_of_path(const std::string& path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "\\site-packages\\"}) {
    const std::size_t at = path.find(folder);
    if (at == std::string::npos) continue;
    const std::string rest = path.substr(at + folder.size());
    return rest.substr(0, rest.find_first_of("/\\"));
  }
  return {};
}

// The line names a source file of its own, a check of the project's or the toolkit's nvcc: it is about no
// package that another line names.
bool is_of_no_package(const LogMatch& hit) {
  static const RE2 kOwn(R"(\b[\w-]+\.(?:cu|cuh|inl)\b|\bcudaCheckError\(\))");
  return hit.software.empty() && (RE2::PartialMatch(hit.quote, kOwn) || group(hit, "tool") == "nvcc");
}

bool row_has(const PackageMention& package, bool analysis::SoftwareRow::*trait) {
  const auto rows = analysis::software();
  const auto row = std::ranges::find(rows, package.name, &analysis::SoftwareRow::package);
  return row != rows.end() && (*row).*trait;
}

// What names itself in its errors, where an error of CUDA's own words does not.
bool silent(const PackageMention& package, const LogMatch* hit) {
  return (hit == nullptr || hit->id.empty()) && row_has(package, &analysis::SoftwareRow::names_itself);
}

using analysis::Cause;

// "Ignore the above" stands right below what it is about.
constexpr std::uint64_t kNear = 2;

}  // namespace

// "cupy-cuda12x" tells more than "cupy"; "PyTorch" is no name of a package.
std::string PackageMention::known_as() const {
  const bool of_pip = std::all_of(written.begin(), written.end(), [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  });
  return of_pip && analysis::knows_wheels_of(analysis::wheel_name(written).distribution) ? written : name;
}

const PackageMention* find_package(const LogFacts& clues, std::string_view name) {
  const auto same = std::find_if(clues.packages.begin(), clues.packages.end(),
                                 [&](const PackageMention& package) { return package.name == name; });
  return same == clues.packages.end() ? nullptr : &*same;
}

std::string package_that_called(const LogFacts& clues, const LogMatch& hit) {
  const std::string name = hit.frames.empty() ? std::string() : package_of_path(hit.frames.back().file);
  if (!name.empty() && name != kCarrier && !name.ends_with(".py")) {
    const std::string project =
        analysis::wheel_name(name).distribution;  // of the folder paddle: paddlepaddle-gpu
    return analysis::knows_wheels_of(project) ? project : name;
  }
  if (is_of_no_package(hit)) return {};
  // Else the only one that the log names beside PyTorch and what comes with it.
  std::vector<std::string> others;
  for (const PackageMention& each : clues.packages)
    if (!each.name.starts_with(kCarrier) && each.name != "triton" && each.name != "nccl" &&
        each.name != "cuDNN" && !silent(each, &hit))
      others.push_back(each.known_as());
  return others.size() == 1 ? others.front() : std::string();
}

const PackageMention* package_that_failed(const LogFacts& clues, const LogMatch* hit) {
  if (hit != nullptr) {
    const PackageMention* said = one_of(clues, hit->software);
    if (said != nullptr && said->name != kCarrier) return said;
    for (auto frame = hit->frames.rbegin(); frame != hit->frames.rend(); ++frame) {
      const std::string name = package_of_path(frame->file);
      if (name.empty()) continue;
      if (name == kCarrier) continue;
      const auto of_folder =
          std::find_if(clues.packages.begin(), clues.packages.end(),
                       [&](const PackageMention& each) { return each.name == name || each.written == name; });
      if (of_folder != clues.packages.end()) return &*of_folder;
    }
    if (said != nullptr) return said;
    if (is_of_no_package(*hit)) return nullptr;
  }
  // A finished program or package brings its own PyTorch, which pip does not exchange.
  const auto finished = [](const PackageMention& each) {
    return row_has(each, &analysis::SoftwareRow::released);
  };
  const PackageMention* carrier = find_package(clues, kCarrier);
  const bool installed =
      (hit != nullptr && !hit->frames.empty()) || (carrier != nullptr && !carrier->version.empty());
  if (!installed && std::ranges::count_if(clues.packages, finished) == 1)
    return &*std::ranges::find_if(clues.packages, finished);
  if (clues.packages.size() == 1)
    return silent(clues.packages.front(), hit) ? nullptr : &clues.packages.front();
  const PackageMention* versioned = nullptr;
  std::size_t many = 0;
  for (const PackageMention& package : clues.packages) {
    if (package.version.empty() || silent(package, hit)) continue;
    versioned = &package;
    ++many;
  }
  return many == 1 ? versioned : carrier;
}

std::string survived(const Course& course, const LogMatch& hit, Cause cause) {
  if (hit.goes_on) return "The line says itself that the program goes on without it";
  if (hit.thrown) return {};
  const auto near = std::find_if(course.goes_on.begin(), course.goes_on.end(), [&](std::uint64_t line) {
    return line > hit.line && line <= hit.line + kNear;
  });
  if (near != course.goes_on.end())
    return fmt::format("Line {} says that the program goes on without it", *near);
  if (course.last_finished > hit.line)
    return fmt::format("The program came to its end: line {}: {}", course.last_finished,
                       course.last_finished_quote);
  // After other failures, steps that go on being printed may count results that nobody computed.
  if (has_trait(cause, analysis::cause_trait::optional) && course.last_works > hit.line)
    return fmt::format("The program went on: line {}: {}", course.last_works, course.last_works_quote);
  return {};
}

const Death* death_after(const Course& course, const LogMatch& hit) {
  for (auto death = course.deaths.rbegin(); death != course.deaths.rend(); ++death) {
    if (death->line > hit.line && death->line > course.last_finished) return &*death;
  }
  return nullptr;
}

}  // namespace kshim::explain
