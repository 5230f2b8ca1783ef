// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
std::vector<Range> ranges_of(const Served& served) {
  std::vector<Range> out;
  for (std::size_t i = 0; i < served.known.size(); ++i) {
    if (!served.runs[i]) continue;
    if (i == 0 || !served.runs[i - 1]) out.push_back({served.known[i], {}});
    out.back().last = served.known[i];
  }
  if (served.newer && !out.empty() && served.runs.back()) out.back().last.reset();
  return out;
}

/// "arch>=7.5,arch<=9.0 arch>=12.0": what stands between commas has to hold, of what blanks part one.
std::string constraint(const Served& served, std::string_view name, std::string_view with,
                       std::string_view either) {
  std::string out;
  for (const Range& range : ranges_of(served)) {
    out += fmt::format("{}{}>={}", out.empty() ? "" : either, name, name_of(range.first));
    if (range.last) out += fmt::format("{}{}<={}", with, name, name_of(*range.last));
  }
  return out;
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

[[noreturn]] void refuse(std::string_view part, std::string_view what) {
  throw cli::UserError(fmt::format("--verify: `{}` is no {}", analysis::harmless(part), what));
}

/// Whether a GPU meets "arch>=7.5", ">=7.5" and the like.
bool meets(ComputeCapability cc, std::string_view part, std::string_view name) {
  std::string_view rest = part;
  if (!rest.starts_with(name))
    refuse(part, fmt::format("condition on {}", name.empty() ? "__cuda_arch" : name));
  rest.remove_prefix(name.size());
  const std::string_view op = rest.substr(0, std::min(rest.find_first_not_of("<>=!"), rest.size()));
  rest.remove_prefix(op.size());
  while (rest.ends_with('*') || rest.ends_with('.')) rest.remove_suffix(1);
  const auto version = image::parse_version(rest);
  if (!version) refuse(part, "condition; write >=7.5");
  const ComputeCapability than{version->major, version->minor};
  return op == ">="                              ? cc >= than
         : op == ">"                             ? cc > than
         : op == "<="                            ? cc <= than
         : op == "<"                             ? cc < than
         : op == "!="                            ? cc != than
         : op == "=" || op == "==" || op.empty() ? cc == than
                                                 : (refuse(part, "condition; write >=7.5"), false);
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

bool promised(ComputeCapability cc, To to, std::string_view declared) {
  const bool conda = to == To::conda;
  if (const std::size_t at = declared.find(conda ? "__cuda_arch" : "NVIDIA_REQUIRE_ARCH=");
      at != std::string_view::npos)
    declared.remove_prefix(at + (conda ? 11 : 20));
  const auto choices = split(declared, conda ? "|\n\"" : " \n\"");
  return std::any_of(choices.begin(), choices.end(), [&](std::string_view choice) {
    const auto parts = split(choice, ", ");
    return std::all_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return meets(cc, part, conda ? "" : "arch"); });
  });
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
  }
  out.newer = ptx;
  for (const auto& [arch, is_ptx] : archs)
    out.archs.push_back(fmt::format("{}_{}", image::to_name(ImageKind::cubin, arch).view().substr(3),
                                    is_ptx ? "virtual" : "real"));
  return out;
}

std::string text_of(const Served& served, To to) {
  switch (to) {
    case To::nvidia_require:
      return fmt::format("NVIDIA_REQUIRE_ARCH=\"{}\"\n", constraint(served, "arch", ",", " "));
    case To::nfd:
      return nfd(served);
    case To::conda:
      return fmt::format("__cuda_arch {}\n", constraint(served, "", ",", "|"));
    case To::wheel_variant:
      break;
  }
  std::string out;
  for (const std::string& arch : served.archs) out += fmt::format("nvidia :: sm_arch :: {}\n", arch);
  return out;
}

Difference verify(const Served& served, To to, std::string_view declared) {
  Difference out;
  if (to == To::nfd) throw cli::UserError("--verify: goes with nvidia-require, wheel-variant and conda");
  if (to == To::wheel_variant) {
    std::set<std::string> promise;
    for (const std::string_view line : split(declared, "\n,\"")) {
      const std::size_t at = line.find("sm_arch :: ");
      if (at != std::string_view::npos)
        promise.emplace(line.substr(at + 11, line.find_first_of(" \r]", at + 11) - at - 11));
    }
    if (promise.empty()) refuse(declared.substr(0, 40), "list of nvidia :: sm_arch properties");
    for (const std::string& arch : promise)
      if (std::find(served.archs.begin(), served.archs.end(), arch) == served.archs.end())
        out.broken.push_back(arch);
    for (const std::string& arch : served.archs)
      if (!promise.contains(arch)) out.unused.push_back(arch);
    return out;
  }
  for (std::size_t i = 0; i < served.known.size(); ++i) {
    const bool wanted = promised(served.known[i], to, declared);
    if (wanted && !served.runs[i]) out.broken.push_back(name_of(served.known[i]));
    if (!wanted && served.runs[i]) out.unused.push_back(name_of(served.known[i]));
  }
  return out;
}

}  // namespace kshim::requirements
