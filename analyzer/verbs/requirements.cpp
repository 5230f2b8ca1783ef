// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/core/gpu_conditions.h"
#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "kshim/image/compute_capability.h"

namespace kshim::requirements {
namespace {

using image::ComputeCapability;
using image::ImageKind;

std::string name_of(ComputeCapability cc) { return std::string(image::to_name(cc).view()); }

/// Runs of GPUs that are served, from and to; no end where newer ones are served too.
struct Range {
  ComputeCapability first;
  std::optional<ComputeCapability> last;
};
std::vector<Range> ranges_of(const std::vector<ComputeCapability>& known, const std::vector<bool>& runs,
                             bool newer) {
  std::vector<Range> out;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!runs[i]) continue;
    if (i == 0 || !runs[i - 1]) out.push_back({known[i], {}});
    out.back().last = known[i];
  }
  if (newer && !out.empty() && runs.back()) out.back().last.reset();
  return out;
}

/// "arch>=7.5,arch<=9.0 arch>=12.0": what stands between commas has to hold, of what blanks part one.
std::string constraint(const std::vector<Range>& ranges, std::string_view name, std::string_view with,
                       std::string_view either) {
  std::string out;
  for (const Range& range : ranges) {
    out += fmt::format("{}{}>={}", out.empty() ? "" : either, name, name_of(range.first));
    if (range.last) out += fmt::format("{}{}<={}", with, name, name_of(*range.last));
  }
  return out;
}

/// GPUs that find SASS take any driver that knows them; the others one that compiles the PTX.
std::string require_cuda(const Served& served) {
  if (!served.cuda.known()) return {};
  std::vector<bool> sass = served.runs;
  for (std::size_t i = 0; i < sass.size(); ++i) sass[i] = sass[i] && !served.compiled[i];
  const std::string free = constraint(ranges_of(served.known, sass, false), "arch", ",", " ");
  return fmt::format("NVIDIA_REQUIRE_CUDA=\"{}{}cuda>={}\"\n", free, free.empty() ? "" : " ",
                     image::to_name(served.cuda).view());
}

// github.com/kubernetes-sigs/node-feature-discovery, usage/image-compatibility: the labels are those of
// NVIDIA's GPU feature discovery.
std::string nfd(const Served& served) {
  std::string out =
      "version: v1alpha1\ncompatibilities:\n- description: \"NVIDIA GPUs that the image has code for\"\n  "
      "rules:\n  - name: \"nvidia gpu\"\n    matchAny:\n";
  std::map<unsigned, std::vector<std::string>> minors;
  for (std::size_t i = 0; i < served.known.size(); ++i)
    if (served.runs[i]) minors[served.known[i].major].push_back(fmt::format("\"{}\"", served.known[i].minor));
  for (const auto& [major, list] : minors)
    out += fmt::format(
        "    - matchFeatures:\n      - feature: local.label\n        matchExpressions:\n          "
        "nvidia.com/gpu.compute.major: {{op: In, value: [\"{}\"]}}\n"
        "          nvidia.com/gpu.compute.minor: {{op: In, value: [{}]}}\n",
        major, fmt::join(list, ", "));
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end != 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

constexpr std::string_view kProperty = "sm_arch :: ";
constexpr std::string_view kRequire = "NVIDIA_REQUIRE_";
constexpr std::string_view kCudaArch = "__cuda_arch";

bool promised(ComputeCapability cc, const Declaration& declared) {
  const auto form =
      declared.to == To::conda ? analysis::Conditions::conda : analysis::Conditions::nvidia_require;
  return std::all_of(
      declared.conditions.begin(), declared.conditions.end(), [&](const std::string& condition) {
        const auto met = analysis::meets(cc, {}, form, condition);
        if (!met)
          throw cli::UserError(fmt::format("{}: `{}` is no condition; write {}", declared.source,
                                           analysis::harmless(condition),
                                           declared.to == To::conda ? ">=7.5,<=9.0" : "arch>=7.5,arch<=9.0"));
        return *met;
      });
}

}  // namespace

namespace {

/// Whether a file has PTX that is compiled for the GPU; `cuda` becomes what a driver for it has at least.
bool compiles(const scan::Scan& scan, image::Arch gpu, image::Version& cuda) {
  bool any = false;
  for (const scan::ScannedObject& object : scan.objects) {
    const bool here = std::any_of(object.targets.begin(), object.targets.end(), [&](const auto& verdict) {
      return verdict.target == gpu && verdict.jit != 0;
    });
    for (const analysis::ImageCount& row : object.images)
      if (here && row.candidate.kind == ImageKind::ptx)
        cuda = std::max(cuda, image::cuda_of_ptx_isa(row.candidate.isa));
    any = any || here;
  }
  return any;
}

}  // namespace

std::vector<image::Arch> known_gpus() {
  std::vector<image::Arch> out;
  for (const image::ComputeCapabilityInfo& row : image::compat_tables().gpus)
    if (row.cc.major >= 5) out.push_back({row.cc, image::Suffix::none});
  std::sort(out.begin(), out.end());
  return out;
}

Served served_by(const scan::Scan& scan) {
  Served out;
  // What a scan finds an error in does not run; a file for other GPUs beside others of its package is none.
  std::set<std::string> broken;
  for (const analysis::Finding& finding : scan.findings)
    if (finding.severity == analysis::Severity::error) broken.insert(finding.need);
  std::set<std::pair<image::Arch, bool>> archs;
  bool ptx = !scan.objects.empty();
  for (const scan::ScannedObject& object : scan.objects) {
    bool own = false;
    for (const analysis::ImageCount& row : object.images) {
      const bool is_ptx = row.candidate.kind == ImageKind::ptx;
      own = own || (is_ptx && row.candidate.arch.suffix == image::Suffix::none);
      if (is_ptx || row.candidate.kind == ImageKind::cubin) archs.insert({row.candidate.arch, is_ptx});
    }
    const bool kernels = std::any_of(object.targets.begin(), object.targets.end(), [](const auto& verdict) {
      return verdict.sass + verdict.jit + verdict.lacking != 0;
    });
    ptx = ptx && (own || !kernels);
  }
  for (const image::Arch& gpu : scan.targets) {
    const bool any =
        std::any_of(scan.objects.begin(), scan.objects.end(), [&](const scan::ScannedObject& object) {
          return std::any_of(object.targets.begin(), object.targets.end(), [&](const auto& verdict) {
            return verdict.target == gpu && verdict.sass + verdict.jit != 0;
          });
        });
    out.known.push_back(gpu.cc);
    out.runs.push_back(any && !broken.contains(std::string(image::to_name(ImageKind::cubin, gpu).view())));
    out.compiled.push_back(out.runs.back() && compiles(scan, gpu, out.cuda));
  }
  out.newer = ptx;
  for (const auto& [arch, is_ptx] : archs)
    out.archs.push_back(fmt::format("{}_{}", image::to_name(ImageKind::cubin, arch).view().substr(3),
                                    is_ptx ? "virtual" : "real"));
  return out;
}

std::string text_of(const Served& served, To to) {
  const std::vector<Range> ranges = ranges_of(served.known, served.runs, served.newer);
  switch (to) {
    case To::nvidia_require:
      return fmt::format("NVIDIA_REQUIRE_ARCH=\"{}\"\n{}", constraint(ranges, "arch", ",", " "),
                         require_cuda(served));
    case To::nfd:
      return nfd(served);
    case To::conda:
      return fmt::format("__cuda_arch {}\n", constraint(ranges, "", ",", "|"));
    case To::wheel_variant:
      break;
  }
  std::string out;
  for (const std::string& arch : served.archs) out += fmt::format("nvidia :: sm_arch :: {}\n", arch);
  return out;
}

Declaration declaration_of(To to, std::string_view text) {
  Declaration out{to, "--declared", {}};
  for (const std::string_view line : split(text, to == To::wheel_variant ? "\n," : "\n")) {
    std::size_t at = to == To::wheel_variant ? line.find(kProperty)
                     : to == To::conda       ? line.find(kCudaArch)
                                             : line.find(kRequire);
    if (to == To::wheel_variant) {
      if (at != std::string_view::npos)
        out.conditions.emplace_back(
            line.substr(at + kProperty.size(),
                        line.find_first_of(" \r\"]", at + kProperty.size()) - at - kProperty.size()));
      continue;
    }
    at = at == std::string_view::npos ? 0 : to == To::conda ? at + kCudaArch.size() : line.find('=', at) + 1;
    std::string condition(line.substr(at));
    std::erase(condition, '"');
    out.conditions.push_back(std::move(condition));
  }
  if (out.conditions.empty())
    throw cli::UserError(
        fmt::format("--declared: `{}` declares nothing", analysis::harmless(text.substr(0, 40))));
  return out;
}

Difference verify(const Served& served, const Declaration& declared) {
  Difference out;
  if (declared.to == To::nfd)
    throw cli::UserError("--declared: goes with nvidia-require, wheel-variant and conda");
  if (declared.to == To::wheel_variant) {
    const std::set<std::string> promise(declared.conditions.begin(), declared.conditions.end());
    for (const std::string& arch : promise)
      if (std::find(served.archs.begin(), served.archs.end(), arch) == served.archs.end())
        out.broken.push_back(arch);
    for (const std::string& arch : served.archs)
      if (!promise.contains(arch)) out.unused.push_back(arch);
    return out;
  }
  for (std::size_t i = 0; i < served.known.size(); ++i) {
    const bool wanted = promised(served.known[i], declared);
    if (wanted && !served.runs[i]) out.broken.push_back(name_of(served.known[i]));
    if (!wanted && served.runs[i]) out.unused.push_back(name_of(served.known[i]));
  }
  return out;
}

}  // namespace kshim::requirements
