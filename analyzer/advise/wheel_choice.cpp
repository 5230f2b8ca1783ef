// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/wheel_choice.h"

#include "analyzer/core/text.h"
#include "analyzer/data/reach.h"

namespace kshim::advise {
using data::Basis;
using data::compare_releases;
using data::is_plain;
using data::WheelName;
using data::WheelRow;
using data::wheels;
using diagnose::Facts;

namespace {

using image::ComputeCapability;
using image::Version;

constexpr std::string_view kNewest = "0";

int compare_last(std::string_view a, std::string_view b) {
  if (a == kNewest || b == kNewest) return static_cast<int>(a == kNewest) - static_cast<int>(b == kNewest);
  return compare_releases(a, b);
}

// Of the newest release that kshim knows.
bool is_open(const WheelRow& row) {
  const auto rows = wheels();
  return std::ranges::none_of(rows, [&](const WheelRow& each) {
    return each.distribution == row.distribution && each.platform == row.platform &&
           compare_last(each.last, row.last) > 0;
  });
}

// The newest release of a row that a Python has, and whose companions serve the GPU.
std::string_view last_of(const WheelRow& row, const data::PythonRow* limit, ComputeCapability device) {
  std::string_view last = last_with_companions(row, device);
  if (last.empty()) last = row.last;
  return limit != nullptr && compare_last(limit->last, last) < 0 ? limit->last : last;
}

bool is_of_python(const WheelRow& row, const data::PythonRow* limit) {
  return limit == nullptr ||
         (compare_last(row.first, limit->last) <= 0 && compare_last(limit->first, row.last) <= 0);
}

// The last release whose build for that CUDA serves the GPU.
std::string_view last_serving(const WheelRow& row, ComputeCapability device) {
  std::string_view last = row.last;
  for (const WheelRow& each : wheels())
    if (each.distribution == row.distribution && each.platform == row.platform &&
        each.variant == row.variant && serves(each, device) != image::Choice::none &&
        compare_last(each.last, last) > 0)
      last = each.last;
  return last;
}

// The better of two of the same release. A driver that ran a build for CUDA 13 runs both of two for an older
// CUDA: then it is the one that goes on for this GPU; else the one for the older driver.
bool is_better(const WheelRow& a, const WheelRow& b, ComputeCapability device, Version used) {
  const bool sass_a = serves(a, device) == image::Choice::sass;
  const bool sass_b = serves(b, device) == image::Choice::sass;
  if (sass_a != sass_b) return sass_a;
  if ((a.basis == Basis::declared) != (b.basis == Basis::declared)) return b.basis == Basis::declared;
  const Version cuda_a = cuda_of(a.variant), cuda_b = cuda_of(b.variant);
  const int longer = compare_last(last_serving(a, device), last_serving(b, device));
  return longer != 0 && cuda_a < used && cuda_b < used ? longer > 0 : cuda_a < cuda_b;
}

// PyPI has one variant of a release: another one is there only where the command can name it.
const data::InstallerRow* installer_of(const WheelRow& row, std::string_view manager) {
  const data::InstallerRow* installer = data::find_installer(row.distribution, manager, row.first);
  if (installer == nullptr) return nullptr;
  for (const std::string_view word : {"variant", "major", "cuda"}) {
    if (core::asks_for(installer->command, word)) return installer;
  }
  WheelName name;
  name.distribution = row.distribution;
  name.version = row.first;
  const std::string_view there = default_variant(name, row.platform);
  return there.empty() || there == row.variant ? installer : nullptr;
}

const WheelRow* best_of(const std::vector<const WheelRow*>& rows, ComputeCapability device, Version used) {
  const WheelRow* best = nullptr;
  for (const WheelRow* row : rows) {
    if (best == nullptr || is_better(*row, *best, device, used)) best = row;
  }
  return best;
}

unsigned major_of(std::string_view release) { return core::first_number<unsigned>(release).value_or(0); }

// The major version that is used, or could be.
unsigned used_major(std::string_view version, std::string_view distribution) {
  unsigned used = is_plain(version) ? major_of(version) : 0;
  if (used != 0) return used;
  for (const WheelRow& each : wheels()) {
    if (each.distribution == distribution) used = std::max(used, major_of(each.first));
  }
  return used;
}

// A user of version 2 of a project has code for it: 1.4 is no answer, whatever it has code for.
bool is_of_the_past(const WheelRow& row, unsigned used) {
  constexpr unsigned kYear = 20;  // RAPIDS counts by years
  return used < kYear && major_of(row.last) < used && !is_open(row);
}

// How many of the GPUs that the driver drives have code in it.
std::size_t served_of(const WheelRow& row, Version driver) {
  std::size_t out = 0;
  for (const data::GpuRow& gpu : data::gpus()) {
    if (!gpu.tegra && driver_support(gpu, driver, {}) == data::DriverSupport::yes &&
        serves(row, gpu.cc) != image::Choice::none)
      ++out;
  }
  return out;
}

}  // namespace

// "cu126", "cuda12.6", "cuda12x", "cu12": 12.6 or 12.0; unknown where it names no CUDA.
Version cuda_of(std::string_view variant) {
  if (!variant.starts_with("cu")) return {};
  variant.remove_prefix(variant.starts_with("cuda") ? 4 : 2);
  const std::uint16_t digits = core::take_number<std::uint16_t>(variant).value_or(0);
  if (digits >= 80) return {static_cast<std::uint16_t>(digits / 10), static_cast<std::uint16_t>(digits % 10)};
  if (!variant.starts_with('.')) return {digits, 0};
  return {digits, core::first_number<std::uint16_t>(variant.substr(1)).value_or(0)};
}

bool runs_on(const WheelRow& row, Version driver) {
  const Version cuda = cuda_of(row.variant);
  return !driver.known() || !cuda.known() || cuda.major <= driver.major;
}

WheelName wheel_of(const Facts& at) {
  const data::BuildRow* build = data::find_build(at.package.name.normal(), at.file.path);
  const bool torch = build != nullptr && build->recipe == "torch_itself";
  std::string package = at.package.name.normal();
  if (package.empty() && build != nullptr) package = torch ? "torch" : std::string(build->distribution);
  WheelName out = data::wheel_name(package, at.package.version, at.package.variant);
  if (torch && out.distribution.empty()) out.distribution = "torch";
  // A library of NVIDIA's that a package brings along has rows of its own: triton-cupti.
  if (const data::VendorLibraryRow* vendor = data::find_vendor_library(at.file.path);
      vendor != nullptr && !at.package.name.empty()) {
    const std::string own = fmt::format("{}-{}", at.package.name.normal(), vendor->prefix);
    if (std::ranges::any_of(wheels(), [&](const WheelRow& row) { return row.distribution == own; }))
      out.distribution = own;
  }
  if (at.package.manager == "conda" && (out.distribution == "torch" || out.distribution == "pytorch"))
    out.distribution = "pytorch-gpu";
  return out;
}

Version likely_driver(const Facts& at) {
  constexpr Version kOfToday{12, 0};  // what asks for less is an old release
  if (at.driver.cuda.known() || !at.images.toolkit.known()) return at.driver.cuda;
  const data::GpuRow* gpu = at.gpu.cc ? data::find_gpu(*at.gpu.cc) : nullptr;
  return std::max({at.images.toolkit, kOfToday, gpu != nullptr ? gpu->first_toolkit : kOfToday});
}

const char* manager_of(const Facts& at) { return at.package.manager == "conda" ? "conda" : "pip"; }

const WheelRow* row_of(const Facts& at, const WheelName& wheel) {
  return data::find_wheel(wheel.distribution, wheel.version, wheel.variant, platform_of(at));
}

std::optional<WheelChoice> choose_wheel(const Facts& at, const WheelName& wheel, Version driver,
                                        const std::vector<std::string_view>& variants,
                                        std::string_view manager) {
  if (manager.empty()) manager = manager_of(at);
  const ComputeCapability device = *at.gpu.cc;
  // The build that is there is not the answer, whatever the table says of it.
  const WheelRow* there = row_of(at, wheel);
  const data::PythonRow* limit = data::find_python(wheel.distribution, at.process.python_version);
  const Version cuda = cuda_of(wheel.variant);
  std::vector<const WheelRow*> rows = data::wheels_serving(wheel.distribution, device, platform_of(at));
  // With an old Python, its last release is as new as it can be.
  const bool limited = !is_plain(wheel.version) && limit != nullptr && limit->last != kNewest;
  const unsigned used =
      rows.empty() ? 0 : used_major(limited ? limit->last : wheel.version, rows.front()->distribution);
  const auto is_older = [&](const WheelRow& row) {
    return (!is_plain(wheel.version) || (compare_releases(row.last, wheel.version) < 0 &&
                                         !data::is_within(wheel.version, row.first, row.last))) &&
           !is_open(row);
  };
  std::erase_if(rows, [&](const WheelRow* row) {
    // PTX alone is an answer where somebody read it, and not in an old release for a GPU that came later.
    const bool weak = serves(*row, device) == image::Choice::jit &&
                      (row->basis == Basis::declared || !row->note.empty() || is_older(*row));
    const bool left_out = !variants.empty() && std::ranges::find(variants, row->variant) == variants.end();
    return row == there || left_out || weak || is_of_the_past(*row, used) ||
           installer_of(*row, manager) == nullptr;
  });
  if (std::ranges::any_of(rows, [&](const WheelRow* row) { return runs_on(*row, driver); }))
    std::erase_if(rows, [&](const WheelRow* row) { return !runs_on(*row, driver); });
  // One that serves the other GPUs as well, where there is one: a second fix for another of them is then the
  // same.
  const auto serves_all = [&](const WheelRow* row) {
    return std::ranges::all_of(at.gpu.others, [&](ComputeCapability other) {
      return serves(*row, other) != image::Choice::none && !last_with_companions(*row, other).empty();
    });
  };
  if (std::ranges::any_of(rows, serves_all))
    std::erase_if(rows, [&](const WheelRow* row) { return !serves_all(row); });
  const auto is_refused = [&](const WheelRow* row) { return last_with_companions(*row, device).empty(); };
  if (!std::ranges::all_of(rows, is_refused)) std::erase_if(rows, is_refused);
  if (rows.empty()) return std::nullopt;
  const auto compiled = [&](const WheelRow* row) { return serves(*row, device) == image::Choice::jit; };
  if (!std::ranges::all_of(rows, compiled)) std::erase_if(rows, compiled);
  if (is_plain(wheel.version)) {
    std::vector<const WheelRow*> same;
    for (const WheelRow* row : rows) {
      if (data::is_within(wheel.version, row->first, row->last) &&
          refusing_companion(*row, wheel.version, device) == nullptr)
        same.push_back(row);
    }
    if (const WheelRow* best = best_of(same, device, cuda))
      return WheelChoice{best, installer_of(*best, manager), "==" + wheel.version, true, wheel.version};
  }
  const auto has_wheel = [&](const WheelRow* row) { return is_of_python(*row, limit); };
  if (std::ranges::any_of(rows, has_wheel)) {
    std::erase_if(rows, [&](const WheelRow* row) { return !has_wheel(row); });
  } else {
    limit = nullptr;  // it takes another Python, which the advice says
  }
  // What is there changes least: the first newer release, else the last older one. Of a release that is not
  // known, the newest.
  const bool known = is_plain(wheel.version);
  const auto release_of = [&](const WheelRow* row) {
    const bool newer = known && compare_releases(row->first, wheel.version) > 0;
    const std::string_view first =
        limit != nullptr && compare_releases(row->first, limit->first) < 0 ? limit->first : row->first;
    return newer && refusing_companion(*row, first, device) == nullptr ? first : last_of(*row, limit, device);
  };
  const auto nearer = [&](std::string_view a, std::string_view b) {
    const bool newer_a = known && compare_last(a, wheel.version) > 0;
    const bool newer_b = known && compare_last(b, wheel.version) > 0;
    if (newer_a != newer_b) return newer_a ? 1 : -1;
    return newer_a ? compare_last(b, a) : compare_last(a, b);
  };
  std::vector<const WheelRow*> nearest;
  for (const WheelRow* row : rows) {
    const int order = nearest.empty() ? 0 : nearer(release_of(row), release_of(nearest.front()));
    if (order > 0) nearest.clear();
    if (order >= 0) nearest.push_back(row);
  }
  const WheelRow* best = best_of(nearest, device, cuda);
  const std::string_view release = release_of(best);
  if (release == kNewest) return WheelChoice{best, installer_of(*best, manager), "", false, ""};
  return WheelChoice{best, installer_of(*best, manager), fmt::format("=={}.*", release), false,
                     std::string(release)};
}

std::optional<WheelChoice> choose_wheel_for_driver(const Facts& at, const WheelName& wheel) {
  const Version driver = at.driver.cuda;
  if (at.gpu.cc) {
    auto choice = choose_wheel(at, wheel, driver);
    return choice && runs_on(*choice->row, driver) ? choice : std::nullopt;
  }
  const std::string platform = platform_of(at);
  // That of code for most of the GPUs which it may be about; of these the oldest CUDA.
  const WheelRow* best = nullptr;
  std::size_t most = 0;
  if (!is_plain(wheel.version)) {
    // Of a release that is not known, the newest with a build that the driver runs.
    for (const WheelRow& row : wheels())
      if (row.distribution == wheel.distribution && row.platform == platform &&
          cuda_of(row.variant).known() && runs_on(row, driver) &&
          installer_of(row, manager_of(at)) != nullptr &&
          (best == nullptr || compare_last(row.last, best->last) > 0))
        best = &row;
    if (best == nullptr || best->last == kNewest) return std::nullopt;
    return WheelChoice{best, installer_of(*best, manager_of(at)), fmt::format("=={}.*", best->last), false,
                       std::string(best->last)};
  }
  for (const WheelRow& row : wheels()) {
    if (row.distribution != wheel.distribution || row.platform != platform || !cuda_of(row.variant).known() ||
        !data::is_within(wheel.version, row.first, row.last) || !runs_on(row, driver) ||
        installer_of(row, manager_of(at)) == nullptr)
      continue;
    const std::size_t served = served_of(row, driver);
    if (best != nullptr &&
        (served < most || (served == most && cuda_of(best->variant) < cuda_of(row.variant))))
      continue;
    best = &row;
    most = served;
  }
  if (best == nullptr) return std::nullopt;
  return WheelChoice{best, installer_of(*best, manager_of(at)), "==" + wheel.version, true, wheel.version};
}

const WheelRow* serving_already(const Facts& at) {
  if (!at.gpu.cc || at.package.from_source || !at.file.path.empty()) return nullptr;
  const WheelName wheel = wheel_of(at);
  if (wheel.distribution.empty() || !is_plain(wheel.version)) return nullptr;
  const WheelRow* there = row_of(at, wheel);
  // Of few of the builds for Windows the table has a row; they are of the same release and CUDA.
  if (there == nullptr && platform_of(at).starts_with("windows"))
    there = data::find_wheel(wheel.distribution, wheel.version, wheel.variant, data::kLinux);
  if (there == nullptr || serves(*there, *at.gpu.cc) != image::Choice::sass) return nullptr;
  // What everybody builds for himself, the table does not know.
  if (data::find_installer(wheel.distribution, manager_of(at)) == nullptr) return nullptr;
  // What was read of the thing itself refutes the table.
  const bool refuted =
      !at.images.have.empty() &&
      image::select_image(at.images.have, {*at.gpu.cc, {}, {}}).choice == image::Choice::none;
  return refuted ? nullptr : there;
}

}  // namespace kshim::advise
