// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/clues.h"

#include <re2/re2.h>

#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/wheels.h"

namespace kshim::input {
using data::SoftwareRow;

namespace {

// Everything that uses PyTorch names it: where another package stands beside it, that one is meant.
constexpr std::string_view kCarrier = "torch";

// Libraries that people list beside their GPU, whatever failed.
bool is_bystander(const PackageMention& package) {
  return package.name == "triton" || package.name == "nccl" || package.name == "cuDNN" ||
         package.name == "opencv";
}

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

// ".../site-packages/flash_attn/flash_attn_interface.py": flash_attn. Cython's frames begin with the package:
// "cuml/cluster/dbscan.pyx".
std::string package_of_path(const std::string& path) {
  if (path.ends_with(".pyx") && !path.starts_with('/')) return path.substr(0, path.find('/'));
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "\\site-packages\\"}) {
    const std::size_t at = path.find(folder);
    if (at == std::string::npos) continue;
    const std::string rest = path.substr(at + folder.size());
    return rest.substr(0, rest.find_first_of("/\\"));
  }
  return {};
}

// Frames that only pass a call on: an extension stands above them.
bool is_plumbing(const core::Place& frame) {
  static const RE2 kPlumbing(
      R"([/\\]torch[/\\](?:autograd[/\\]function|_ops|_library[/\\]\w+|_dynamo[/\\]\w+|_compile|nn[/\\]modules[/\\]module|utils[/\\]_contextlib|utils[/\\]checkpoint|amp[/\\]autocast_mode)\.py$)");
  return RE2::PartialMatch(frame.file, kPlumbing);
}

// The package of the innermost frame that does something; empty where the frames show none.
std::string package_of_frames(const std::vector<core::Place>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if (!is_plumbing(*frame)) return package_of_path(frame->file);
  return {};
}

bool is_named(const PackageMention& package, std::string_view folder) {
  return package.name == folder || package.written == folder;
}

// The line names a source file of its own, a check of the project's or the toolkit's nvcc: it is about no
// package that another line names.
bool is_of_no_package(const LogMatch& hit) {
  static const RE2 kOwn(R"(\b[\w-]+\.(?:cu|cuh|inl)\b|\bcudaCheckError\(\))");
  return hit.software.empty() && (RE2::PartialMatch(hit.quote, kOwn) || group(hit, "tool") == "nvcc");
}

const SoftwareRow* row_of(std::string_view package) {
  return data::first_row(data::software(), [&](const SoftwareRow& row) { return row.package == package; });
}

// "Ignore the above" stands right below what it is about.
constexpr std::uint64_t kNear = 2;

// The number of the GPU that the line is about: it stands there, or below it, or in the traceback above.
std::optional<int> ordinal_at(const LogFacts& clues, std::uint64_t line) {
  constexpr std::uint64_t kBelow = 2;
  constexpr std::uint64_t kAbove = 12;
  if (const auto visible = clues.env.find("CUDA_VISIBLE_DEVICES"); visible != clues.env.end())
    if (const std::string& text = visible->second; text.size() == 1 && text[0] >= '0' && text[0] <= '9')
      return text[0] - '0';
  const OrdinalMention* best = nullptr;
  for (const OrdinalMention& each : clues.ordinals) {
    if (each.line > line + kBelow || each.line + kAbove < line) continue;
    const auto distance = [&](std::uint64_t at) { return at > line ? at - line : line - at; };
    if (best == nullptr || distance(each.line) < distance(best->line)) best = &each;
  }
  return best == nullptr ? std::nullopt : std::optional(best->ordinal);
}

// Of several runs, the last one up to the failing line: what is named there, and what stands right above it.
void keep_last_run(std::uint64_t failing, std::vector<const DeviceMention*>& devices) {
  constexpr std::uint64_t kTogether = 3;
  std::uint64_t from = 0;
  for (const DeviceMention* device : devices)
    if (device->line <= failing) from = std::max(from, device->line);
  if (from == 0) return;
  for (bool more = true; std::exchange(more, false);)
    for (const DeviceMention* device : devices)
      if (device->line < from && device->line + kTogether >= from) {
        from = device->line;
        more = true;
      }
  std::erase_if(devices,
                [&](const DeviceMention* each) { return each->line < from || each->line > failing; });
}

}  // namespace

// "cupy-cuda12x" tells more than "cupy"; "PyTorch" is no name of a package.
std::string PackageMention::known_as() const {
  const bool of_pip = std::all_of(written.begin(), written.end(), [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  });
  return of_pip && data::knows_wheels_of(data::wheel_name(written).distribution) ? written : name;
}

std::vector<const DeviceMention*> suspected_devices(const LogFacts& clues, std::uint64_t line) {
  if (const auto ordinal = ordinal_at(clues, line)) {
    const auto named = [&](const DeviceMention& device) {
      return std::ranges::find(device.ordinals, *ordinal) != device.ordinals.end();
    };
    const auto found = std::ranges::find_if(clues.devices, named);
    if (found != clues.devices.end()) return {&*found};
  }
  std::vector<const DeviceMention*> out;
  for (const DeviceMention& device : clues.devices) out.push_back(&device);
  const auto has_role = [](DeviceRole role) {
    return [role](const DeviceMention* device) { return device->role == role; };
  };
  if (std::ranges::any_of(out, has_role(DeviceRole::fails)))
    std::erase_if(out, std::not_fn(has_role(DeviceRole::fails)));
  else if (!std::ranges::all_of(out, has_role(DeviceRole::works)))
    std::erase_if(out, has_role(DeviceRole::works));
  keep_last_run(line, out);
  // A stated compute capability is more reliable than a GPU name.
  const auto numbered = [](const DeviceMention* device) { return !device->by_name; };
  if (std::ranges::any_of(out, numbered)) std::erase_if(out, std::not_fn(numbered));
  // Of several that nothing tells apart: the one that builds leave out first, an old one, else the newest.
  constexpr image::ComputeCapability kOld{7, 0};
  const auto older = [](const DeviceMention* a, const DeviceMention* b) { return a->cc < b->cc; };
  if (std::ranges::any_of(out, [&](const DeviceMention* each) { return each->cc < kOld; }))
    std::ranges::stable_sort(out, older);
  return out;
}

std::string software_of(std::string_view name) {
  const SoftwareRow* row = data::first_row(data::software(), [&](const SoftwareRow& each) {
    return RE2::FullMatch({name.data(), name.size()}, fmt::format("(?i)(?:{})", each.pattern));
  });
  return row == nullptr ? std::string() : std::string(row->package);
}

bool goes_with_torch(std::string_view package) {
  const SoftwareRow* row = row_of(package);
  return row != nullptr && row->use == "paired";
}

bool is_framework(std::string_view package) {
  const SoftwareRow* row = row_of(package);
  return row != nullptr && row->use == "framework";
}

bool is_vendored(std::string_view package) {
  const SoftwareRow* row = row_of(package);
  return row != nullptr && row->use == "vendored";
}

const PackageMention* find_package(const LogFacts& clues, std::string_view name) {
  const auto same = std::find_if(clues.packages.begin(), clues.packages.end(),
                                 [&](const PackageMention& package) { return package.name == name; });
  return same == clues.packages.end() ? nullptr : &*same;
}

std::string package_that_called(const LogFacts& clues, const LogMatch& hit) {
  const std::string name = package_of_frames(hit.frames);
  if (!name.empty() && name != kCarrier && !name.ends_with(".py")) {
    const std::string project =
        data::wheel_name(name).distribution;  // of the folder paddle: paddlepaddle-gpu
    return data::knows_wheels_of(project) ? project : name;
  }
  if (is_of_no_package(hit)) return {};
  // Else the only one that the log names beside PyTorch and what comes with it.
  std::vector<std::string> others;
  for (const PackageMention& each : clues.packages)
    if (!each.name.starts_with(kCarrier) && !is_bystander(each) && !clues.works.contains(each.name))
      others.push_back(each.known_as());
  return others.size() == 1 ? others.front() : std::string();
}

const PackageMention* package_that_failed(const LogFacts& clues, const LogMatch* hit) {
  const auto finished = [](const PackageMention& each) {
    const SoftwareRow* row = row_of(each.name);
    return row != nullptr && row->released;
  };
  const bool one_finished = std::ranges::count_if(clues.packages, finished) == 1;
  if (hit != nullptr) {
    const PackageMention* said = one_of(clues, hit->software);
    // Of a finished program, the part within that fails is not what its user installs.
    if (said != nullptr && is_vendored(said->name) && one_finished)
      return &*std::ranges::find_if(clues.packages, finished);
    // cuDNN hands CUDA's own errors on: it is not what lacks the code.
    if (said != nullptr && hit->code != 0 && said->name == "cuDNN") said = nullptr;
    if (said != nullptr && said->name != kCarrier) return said;
    for (auto frame = hit->frames.rbegin(); frame != hit->frames.rend(); ++frame) {
      const std::string name = package_of_path(frame->file);
      if (name.empty()) continue;
      if (name == kCarrier) continue;
      const auto of_folder = std::ranges::find_if(
          clues.packages, [&](const PackageMention& each) { return is_named(each, name); });
      if (of_folder != clues.packages.end()) return &*of_folder;
      // Compiled, and known to no table.
      if (hit->calls_native && !is_plumbing(*frame)) return nullptr;
    }
    if (said != nullptr) return said;
    if (is_of_no_package(*hit)) return nullptr;
  }
  const auto is_out = [&](const PackageMention& each) {
    return is_bystander(each) || clues.works.contains(each.name);
  };
  // A finished program or package brings its own PyTorch, which pip does not exchange.
  const PackageMention* carrier = find_package(clues, kCarrier);
  const bool installed =
      (hit != nullptr && !hit->frames.empty()) || (carrier != nullptr && !carrier->version.empty());
  if (!installed && one_finished) return &*std::ranges::find_if(clues.packages, finished);
  if (clues.packages.size() == 1 && !is_out(clues.packages.front())) return &clues.packages.front();
  const PackageMention* versioned = nullptr;
  std::size_t many = 0;
  for (const PackageMention& package : clues.packages) {
    if (package.version.empty() || is_out(package)) continue;
    versioned = &package;
    ++many;
  }
  if (many == 1) return versioned;
  // Of those that no version stands beside, the only one that is built on PyTorch.
  const PackageMention* other = nullptr;
  for (const PackageMention& package : clues.packages) {
    if (package.name == kCarrier || is_out(package)) continue;
    if (other != nullptr) return find_package(clues, kCarrier);
    other = &package;
  }
  return many == 0 && other != nullptr ? other : find_package(clues, kCarrier);
}

const PackageMention* package_beside(const LogFacts& clues, const LogMatch* hit, std::string_view working) {
  const std::string framed = hit != nullptr ? package_of_frames(hit->frames) : std::string();
  const PackageMention* only = nullptr;
  for (const PackageMention& each : clues.packages) {
    if (each.name == working || each.name.starts_with(kCarrier)) continue;
    if (is_named(each, framed)) return &each;
    if (is_bystander(each) || clues.works.contains(each.name)) continue;
    if (only != nullptr) return nullptr;
    only = &each;
  }
  return only;
}

bool is_failed_by_frame(const LogFacts& clues, const LogMatch& hit) {
  const std::string name = package_of_frames(hit.frames);
  return hit.calls_native && !name.empty() && name != kCarrier &&
         std::ranges::none_of(clues.packages, [&](const auto& each) { return is_named(each, name); });
}

image::ComputeCapability minimum_of(const LogFacts& clues, std::string_view package) {
  image::ComputeCapability out{};
  for (const PackageMinimum& each : clues.minimums) {
    const bool about =
        each.software.empty() || std::ranges::find(each.software, package) != each.software.end();
    if (about && out < each.cc) out = each.cc;
  }
  return out;
}

std::string survived(const Course& course, const LogMatch& hit, core::Cause cause) {
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
  if (has_trait(cause, core::cause_trait::optional) && course.last_works > hit.line)
    return fmt::format("The program went on: line {}: {}", course.last_works, course.last_works_quote);
  return {};
}

std::uint64_t on_cpu_after(const Course& course, const LogMatch& hit) {
  // A traceback that a program only shows ends a little above what it does next.
  constexpr std::uint64_t kBelow = 20;
  const auto later = std::ranges::find_if(course.on_cpu, [&](std::uint64_t line) {
    return line >= hit.line && (!hit.thrown || line <= hit.line + kBelow);
  });
  return later == course.on_cpu.end() ? 0 : *later;
}

const Death* death_after(const Course& course, const LogMatch& hit) {
  for (auto death = course.deaths.rbegin(); death != course.deaths.rend(); ++death) {
    if (death->line > hit.line && death->line > course.last_finished) return &*death;
  }
  return nullptr;
}

}  // namespace kshim::input
