// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/wheel_fixes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "analyzer/knowledge/knowledge.h"
#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;
using image::Version;

constexpr std::string_view kArm = "linux aarch64";

// "cu126", "cuda12.6", "cuda12x", "cu12": 12.6 or 12.0; unknown where it names no CUDA.
Version cuda_of(std::string_view variant) {
  if (!variant.starts_with("cu")) return {};
  variant.remove_prefix(variant.starts_with("cuda") ? 4 : 2);
  std::uint16_t digits = 0;
  const auto [end, error] = std::from_chars(variant.data(), variant.data() + variant.size(), digits);
  if (error != std::errc{}) return {};
  if (digits >= 80) return {static_cast<std::uint16_t>(digits / 10), static_cast<std::uint16_t>(digits % 10)};
  std::uint16_t minor = 0;
  if (end != variant.data() + variant.size() && *end == '.')
    std::from_chars(end + 1, variant.data() + variant.size(), minor);
  return {digits, minor};
}

// "12.6", and "12" of a build that serves all of 12.
std::string cuda_text(std::string_view variant) {
  const Version cuda = cuda_of(variant);
  const bool fine = cuda.minor != 0 || std::count_if(variant.begin(), variant.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; }) > 2;
  return fine ? std::string(image::to_name(cuda).view()) : std::to_string(cuda.major);
}

bool runs_on(const WheelRow& row, Version driver) {
  const Version cuda = cuda_of(row.variant);
  return !driver.known() || !cuda.known() || cuda.major <= driver.major;
}

// A release that comes from a report or a log may be any text.
bool is_plain(std::string_view release) {
  return !release.empty() && release.front() >= '0' && release.front() <= '9' &&
         release.find_first_not_of("0123456789.post") == std::string_view::npos;
}

bool is_open(const WheelRow& row) { return row.last == "0"; }

// The better of two of the same release.
bool is_better(const WheelRow& a, const WheelRow& b, ComputeCapability device) {
  const bool sass_a = serves(a, device) == image::Choice::sass;
  const bool sass_b = serves(b, device) == image::Choice::sass;
  if (sass_a != sass_b) return sass_a;
  return cuda_of(a.variant) < cuda_of(b.variant);
}

// PyPI has one variant of a release: another one is there only where the command can name it.
bool can_be_asked_for(const WheelRow& row, const InstallerRow& installer) {
  for (const std::string_view word : {"{variant}", "{major}", "{cuda}"}) {
    if (installer.command.find(word) != std::string_view::npos) return true;
  }
  WheelName name;
  name.distribution = row.distribution;
  name.version = row.first;
  const std::string_view there = default_variant(name, row.platform);
  return there.empty() || there == row.variant;
}

const WheelRow* best_of(const std::vector<const WheelRow*>& rows, ComputeCapability device) {
  const WheelRow* best = nullptr;
  for (const WheelRow* row : rows) {
    if (best == nullptr || is_better(*row, *best, device)) best = row;
  }
  return best;
}

std::string image_that_serves(const WheelRow& row, ComputeCapability device) {
  const auto images = images_of(row);
  const auto selection = image::select_image(images, {device, {}, {}});
  return std::string(image::to_name(images[selection.index].kind, images[selection.index].arch).view());
}

std::string filled(std::string_view command,
                   const std::vector<std::pair<std::string_view, std::string>>& words) {
  std::string out;
  while (!command.empty()) {
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const auto& word) { return command.starts_with(word.first); });
    if (found == words.end()) {
      out += command.front();
      command.remove_prefix(1);
    } else {
      out += found->second;
      command.remove_prefix(found->first.size());
    }
  }
  return out;
}

// The lines are those of the template: a word that brings a line break of its own stays within its quotes.
std::vector<std::string> commands_of(std::string_view command,
                                     const std::vector<std::pair<std::string_view, std::string>>& words) {
  std::vector<std::string> out;
  while (!command.empty()) {
    const std::string_view line = command.substr(0, command.find('\n'));
    out.push_back(filled(line, words));
    command.remove_prefix(std::min(command.size(), line.size() + 1));
  }
  return out;
}

std::string name(Version version) { return std::string(image::to_name(version).view()); }

std::string caveat_for(const Situation& at, const WheelChoice& choice, const WheelName& wheel,
                       const InstallerRow& installer) {
  std::vector<std::string> parts;
  const Version cuda = cuda_of(choice.row->variant);
  if (!choice.same && is_plain(wheel.version) && knows_wheels_of(wheel.distribution))
    parts.push_back(fmt::format("no build of {} is known to have code for this GPU", wheel.version));
  if (!installer.caveat.empty()) parts.emplace_back(installer.caveat);
  if (!choice.row->note.empty()) parts.emplace_back(choice.row->note);
  const ToolkitRow* toolkit = cuda.known() ? toolkit_at_most({cuda.major, 0}) : nullptr;
  if (toolkit != nullptr && !toolkit->minor_driver.empty() && toolkit->version.major == cuda.major) {
    if (at.driver.known() && cuda.major > at.driver.major)
      parts.push_back(fmt::format("it needs driver {} or newer, and yours is for CUDA {}",
                                  toolkit->minor_driver, name(at.driver)));
    else if (!at.driver.known())
      parts.push_back(fmt::format("it needs driver {} or newer", toolkit->minor_driver));
  }
  if (!choice.row->verified)
    parts.emplace_back("what the build holds is known second hand: kshim scan says what is in it");
  return join(parts, "; ");
}

}  // namespace

std::string platform_of(const Situation& at) {
  if (!at.platform.empty()) return at.platform;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  return std::string(gpu != nullptr && gpu->tegra ? kArm : kLinux);
}

WheelName wheel_of(const Situation& at) {
  const BuildRow* build = find_build(at.package, at.object);
  const bool torch = build != nullptr && build->recipe == Recipe::torch_itself;
  std::string package = at.package;
  if (package.empty() && build != nullptr) package = torch ? "torch" : std::string(build->distribution);
  WheelName out = wheel_name(package, at.package_version, at.variant);
  if (torch && out.distribution.empty()) out.distribution = "torch";
  if (at.manager == "conda" && (out.distribution == "torch" || out.distribution == "pytorch"))
    out.distribution = "pytorch-gpu";
  return out;
}

std::optional<WheelChoice> choose_wheel(const WheelName& wheel, const InstallerRow& installer,
                                        ComputeCapability device, std::string_view platform, Version driver) {
  // The build that is there is not the answer, whatever the table says of it.
  const WheelRow* there = find_wheel(wheel.distribution, wheel.version, wheel.variant, platform);
  std::vector<const WheelRow*> rows = wheels_serving(wheel.distribution, device, platform);
  std::erase_if(rows, [&](const WheelRow* row) {
    // PTX alone is an answer where somebody read it, and not in an old release for a GPU that came later.
    const bool older = is_plain(wheel.version) && !is_open(*row) &&
                       compare_releases(row->last, wheel.version) < 0 &&
                       !is_within(wheel.version, row->first, row->last);
    const bool weak = serves(*row, device) == image::Choice::jit && (!row->verified || older);
    return row == there || weak || !can_be_asked_for(*row, installer);
  });
  if (std::any_of(rows.begin(), rows.end(), [&](const WheelRow* row) { return runs_on(*row, driver); }))
    std::erase_if(rows, [&](const WheelRow* row) { return !runs_on(*row, driver); });
  if (rows.empty()) return std::nullopt;
  if (is_plain(wheel.version)) {
    std::vector<const WheelRow*> same;
    for (const WheelRow* row : rows) {
      if (is_within(wheel.version, row->first, row->last)) same.push_back(row);
    }
    if (const WheelRow* best = best_of(same, device)) return WheelChoice{best, "==" + wheel.version, true};
  }
  std::vector<const WheelRow*> newest;
  for (const WheelRow* row : rows) {
    if (newest.empty() || row->last == newest.front()->last) newest.push_back(row);
  }
  const WheelRow* best = best_of(newest, device);
  return WheelChoice{best, is_open(*best) ? "" : fmt::format("=={}.*", best->last), false};
}

bool add_wheel_fix(const Situation& at, std::vector<Fix>& fixes, std::string_view distribution) {
  if (at.from_source) return false;
  if (!at.device) return false;
  WheelName wheel = wheel_of(at);
  // bitsandbytes has a library for each CUDA in one package, and takes that of PyTorch's.
  const bool by_torch = wheel.distribution == "bitsandbytes";
  if (by_torch) distribution = "torch";
  if (!distribution.empty() && wheel.distribution != distribution && wheel.distribution != "pytorch-gpu") {
    wheel = {};
    wheel.distribution = at.manager == "conda" && distribution == "torch" ? "pytorch-gpu" : distribution;
  }
  if (wheel.distribution.empty()) return false;
  const std::string manager = at.manager == "conda" ? "conda" : "pip";
  const InstallerRow* installer = find_installer(wheel.distribution, manager);
  if (installer == nullptr || at.manager == "dpkg" || at.manager == "rpm") return false;
  const auto choice = choose_wheel(wheel, *installer, *at.device, platform_of(at), at.driver);
  const GpuRow* gpu = find_gpu(*at.device);
  if (!choice) {
    if (const InstallerRow* container = find_installer(wheel.distribution, "container");
        container != nullptr && at.device->major >= 10)
      fixes.push_back({FixKind::reinstall,
                       fmt::format("Run NVIDIA's container of {}", container->title),
                       {std::string(container->command)},
                       "its build has code for this GPU, and the published packages have none",
                       std::string(container->caveat)});
    if (gpu != nullptr && gpu->tegra && wheel.distribution == "torch")
      fixes.push_back({FixKind::reinstall,
                       "Install NVIDIA's PyTorch wheel for this Jetson",
                       {},
                       "PyTorch's own wheels have no code for it",
                       ""});
    return false;
  }
  const Version cuda = cuda_of(choice->row->variant);
  const std::string served = image_that_serves(*choice->row, *at.device);
  const bool compiled = serves(*choice->row, *at.device) == image::Choice::jit;
  const std::string release = choice->same            ? wheel.version
                              : is_open(*choice->row) ? ""
                                                      : std::string(choice->row->last);
  Fix fix;
  fix.kind = FixKind::reinstall;
  fix.title = fmt::format("Install {}{}{}, which has code for this GPU", installer->title,
                          release.empty() ? "" : " " + release,
                          cuda.known() ? " for CUDA " + cuda_text(choice->row->variant) : "");
  std::string which(choice->row->variant);
  fix.why = fmt::format("{} {}, {}", which.empty() ? "it has" : fmt::format("the build for {} has", which),
                        served, compiled ? "which the driver compiles for it" : "which runs on it");
  const std::string installed = at.package.empty() ? std::string(wheel.distribution) : at.package;
  fix.commands = commands_of(installer->command, {{"{pin}", choice->pin},
                                                  {"{variant}", which},
                                                  {"{major}", std::to_string(cuda.major)},
                                                  {"{cuda}", name(cuda)},
                                                  {"{installed}", shell_quote(installed)}});
  fix.caveat = caveat_for(at, *choice, wheel, *installer);
  if (by_torch)
    fix.caveat = "bitsandbytes takes the library for the CUDA that PyTorch is built for; " + fix.caveat;
  fixes.push_back(std::move(fix));
  return choice->row->verified && !compiled && is_plain(wheel.version);
}

std::vector<std::string> useless_variants(const Situation& at) {
  std::vector<std::string> out;
  const WheelName wheel = wheel_of(at);
  if (!at.device || wheel.distribution.empty() || !is_plain(wheel.version)) return out;
  const std::string platform = platform_of(at);
  const WheelRow* there = find_wheel(wheel.distribution, wheel.version, wheel.variant, platform);
  for (const WheelRow& row : wheels()) {
    if (&row != there && row.distribution == wheel.distribution && row.platform == platform &&
        !row.variant.empty() && is_within(wheel.version, row.first, row.last) &&
        serves(row, *at.device) == image::Choice::none)
      out.emplace_back(row.variant);
  }
  return out;
}

}  // namespace kshim::analysis
