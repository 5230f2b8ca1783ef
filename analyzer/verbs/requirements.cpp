// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/requirements.h"

#include <fmt/format.h>

#include "analyzer/core/foreign_json.h"
#include "analyzer/core/gpu_conditions.h"
#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "kshim/image/compute_capability.h"

namespace kshim::verbs {
namespace {

using image::ComputeCapability;
using image::ImageKind;

/// Runs of GPUs that are served, from and to; no end where newer ones are served too.
struct Range {
  ComputeCapability first;
  std::optional<ComputeCapability> last = {};
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
                       std::string_view either, std::string_view also = {}) {
  std::string out;
  for (const Range& range : ranges) {
    out += fmt::format("{}{}>={}", out.empty() ? "" : either, name, image::name(range.first));
    if (range.last) out += fmt::format("{}{}<={}", with, name, image::name(*range.last));
    out += also;
  }
  return out;
}

/// GPUs that find SASS take any driver that knows them and serves the runtime; the others one that compiles
/// the PTX.
std::string require_cuda(const Served& served) {
  const image::Version all = std::max(served.cuda, served.runtime);
  if (!all.known()) return {};
  std::string sass;
  if (served.runtime < all) {
    std::vector<bool> here = served.runs;
    std::transform(here.begin(), here.end(), served.compiled.begin(), here.begin(), std::greater());
    const std::string runtime = served.runtime.known() ? fmt::format(",cuda>={}", name(served.runtime)) : "";
    sass = constraint(ranges_of(served.known, here, false), "arch", ",", " ", runtime);
  }
  return fmt::format("NVIDIA_REQUIRE_CUDA=\"{}{}cuda>={}\"\n", sass, sass.empty() ? "" : " ", name(all));
}

constexpr const char* kMajor = "nvidia.com/gpu.compute.major";
constexpr const char* kMinor = "nvidia.com/gpu.compute.minor";

// github.com/kubernetes-sigs/node-feature-discovery, usage/image-compatibility: the labels are those of
// NVIDIA's GPU feature discovery. Its readers take JSON, which is YAML too.
std::string nfd(const Served& served) {
  using OrderedJson = nlohmann::ordered_json;
  std::map<unsigned, OrderedJson> minors;
  for (std::size_t i = 0; i < served.known.size(); ++i)
    if (served.runs[i]) minors[served.known[i].major].push_back(std::to_string(served.known[i].minor));
  OrderedJson any = OrderedJson::array();
  for (const auto& [major, list] : minors)
    any.push_back({{"matchFeatures",
                    OrderedJson::array({{{"feature", "local.label"},
                                         {"matchExpressions",
                                          {{kMajor, {{"op", "In"}, {"value", {std::to_string(major)}}}},
                                           {kMinor, {{"op", "In"}, {"value", list}}}}}}})}});
  const OrderedJson rule = {{"name", "nvidia gpu"}, {"matchAny", std::move(any)}};
  const OrderedJson out = {
      {"version", "v1alpha1"},
      {"compatibilities", OrderedJson::array({{{"description", "NVIDIA GPUs that the image has code for"},
                                               {"rules", OrderedJson::array({rule})}}})}};
  return out.dump(2) + "\n";
}

bool holds(const nlohmann::json& expression, unsigned have) {
  const auto& values = list_at(expression, "value");
  const std::string op = string_at(expression, "op");
  const auto is = [&](const auto& value) { return value == std::to_string(have) || value == have; };
  if (op == "In") return std::ranges::any_of(values, is);
  if (op == "NotIn") return std::ranges::none_of(values, is);
  if (op == "Exists") return true;
  const std::string first = !values.empty() && values[0].is_string() ? values[0].get<std::string>() : "";
  const unsigned than = first_number<unsigned>(first).value_or(0);
  if (op == "Gt") return have > than;
  if (op == "Lt") return have < than;
  throw UserError(
      fmt::format("--declared: {} is compared by `{}`; write In, NotIn, Gt or Lt", kMajor, sanitize(op)));
}

bool matches(const nlohmann::json& rule, ComputeCapability cc) {
  for (const auto& feature : list_at(rule, "matchFeatures"))
    for (const auto& [key, number] : {std::pair{kMajor, cc.major}, std::pair{kMinor, cc.minor}}) {
      const nlohmann::json::json_pointer at = nlohmann::json::json_pointer("/matchExpressions") / key;
      if (feature.contains(at) && !holds(feature[at], number)) return false;
    }
  return true;
}

/// Whether an artifact allows a GPU. Expressions on other labels are taken to be met.
bool allows(const nlohmann::json& artifact, ComputeCapability cc) {
  return std::ranges::any_of(list_at(artifact, "compatibilities"), [&](const auto& set) {
    return std::ranges::all_of(list_at(set, "rules"), [&](const auto& rule) {
      const auto& any = list_at(rule, "matchAny");
      return matches(rule, cc) &&
             (any.empty() || std::ranges::any_of(any, [&](const auto& each) { return matches(each, cc); }));
    });
  });
}

/// The GPUs that it allows, as conda would write them.
Declaration declaration_of_nfd(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("compatibilities"))
    throw UserError("--declared: is no image compatibility artifact in JSON; `yq -o json` makes one of YAML");
  std::string allowed;
  for (const image::Arch& gpu : known_gpus())
    if (allows(json, gpu.cc)) allowed += fmt::format("{}=={}", allowed.empty() ? "" : "|", name(gpu.cc));
  return {To::nfd, "--declared", {allowed.empty() ? "<0.0" : allowed}, {}};
}

constexpr std::string_view kProperty = "sm_arch :: ";
constexpr std::string_view kRequire = "NVIDIA_REQUIRE_";
constexpr std::string_view kCudaArch = "__cuda_arch";

bool promised(ComputeCapability cc, const Declaration& declared) {
  const auto form = declared.to == To::nvidia_require ? Conditions::nvidia_require : Conditions::conda;
  return std::ranges::all_of(declared.conditions, [&](const std::string& condition) {
    const auto met = meets(cc, {}, form, condition);
    if (!met)
      throw UserError(fmt::format("{}: `{}` is no condition; write {}", declared.source, sanitize(condition),
                                  declared.to == To::conda ? ">=7.5,<=9.0" : "arch>=7.5,arch<=9.0"));
    return *met;
  });
}

/// Whether a file has PTX that is compiled for the GPU; `cuda` becomes what a driver for it has at least.
bool compiles(const Scan& scan, image::Arch gpu, image::Version& cuda) {
  bool any = false;
  for (const ScannedObject& object : scan.objects) {
    const bool here = std::ranges::any_of(
        object.targets, [&](const auto& verdict) { return verdict.target == gpu && verdict.jit != 0; });
    for (const ImageCount& row : object.images)
      if (here && row.candidate.kind == ImageKind::ptx)
        cuda = std::max(cuda, image::cuda_of_ptx_isa(row.candidate.isa));
    any = any || here;
  }
  return any;
}

/// The oldest driver that the conditions allow.
std::optional<image::Version> oldest_driver(const Declaration& declared) {
  for (const image::PtxIsaRow& row : image::compat_tables().isas) {
    const bool allowed = std::ranges::all_of(declared.drivers, [&](const std::string& condition) {
      const auto met = meets({row.cuda.major, row.cuda.minor}, {}, Conditions::conda, condition);
      if (!met)
        throw UserError(fmt::format("{}: `{}` is no version of CUDA; write >=12.8", declared.source,
                                    sanitize(condition)));
      return *met;
    });
    if (allowed) return row.cuda;
  }
  return std::nullopt;
}

}  // namespace

std::vector<image::Arch> known_gpus() {
  std::vector<image::Arch> out;
  for (const image::ComputeCapabilityInfo& row : image::compat_tables().gpus)
    if (row.cc.major >= 5) out.push_back({row.cc, image::Suffix::none});
  std::ranges::sort(out);
  return out;
}

Served served_by(const Scan& scan) {
  Served out;
  // What a scan finds an error in does not run; a file for other GPUs beside others of its package is none.
  std::set<ComputeCapability> broken;
  for (const Finding& finding : scan.findings)
    if (finding.severity == Severity::error)
      for (const Device& device : finding.devices)
        if (device.cc) broken.insert(*device.cc);
  std::set<std::pair<image::Arch, bool>> archs;
  bool ptx = !scan.objects.empty();
  for (const ScannedObject& object : scan.objects) {
    bool own = false;
    out.runtime = std::max(out.runtime, object.runtime);
    for (const ImageCount& row : object.images) {
      const bool is_ptx = row.candidate.kind == ImageKind::ptx;
      own = own || (is_ptx && row.candidate.arch.suffix == image::Suffix::none);
      if (is_ptx || row.candidate.kind == ImageKind::cubin) archs.insert({row.candidate.arch, is_ptx});
    }
    const bool kernels = std::ranges::any_of(object.targets, [](const auto& verdict) {
      return verdict.sass + verdict.jit + verdict.lacking != 0;
    });
    ptx = ptx && (own || !kernels);
  }
  // Jetson and Drive have no x86 processor.
  const bool x86 = std::ranges::all_of(
      scan.objects, [](const ScannedObject& object) { return object.format.ends_with("x86-64"); });
  for (const image::Arch& gpu : scan.targets) {
    if (x86 && image::is_tegra(gpu.cc)) continue;
    const bool any = std::ranges::any_of(scan.objects, [&](const ScannedObject& object) {
      return std::ranges::any_of(object.targets, [&](const auto& verdict) {
        return verdict.target == gpu && verdict.sass + verdict.jit != 0;
      });
    });
    out.known.push_back(gpu.cc);
    out.runs.push_back(any && !broken.contains(gpu.cc));
    out.compiled.push_back(out.runs.back() && compiles(scan, gpu, out.cuda));
  }
  out.newer = ptx;
  for (const auto& [arch, is_ptx] : archs)
    out.archs.push_back(fmt::format("{}_{}", sm_name(arch).substr(3), is_ptx ? "virtual" : "real"));
  return out;
}

std::string requirement_text(const Served& served, To to) {
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

void add_conda_spec(std::string_view spec, Declaration& declaration) {
  const std::string_view name = spec.substr(0, spec.find_first_of(" <>=!~"));
  const std::size_t at = spec.find_first_not_of(' ', name.size());
  if ((name != kCudaArch && name != "__cuda") || at == std::string_view::npos) return;
  (name == kCudaArch ? declaration.conditions : declaration.drivers)
      .emplace_back(spec.substr(at, spec.find(' ', at) - at));
}

Declaration declaration_of(To to, std::string_view text) {
  if (to == To::nfd) return declaration_of_nfd(text);
  Declaration out{to, "--declared", {}, {}};
  for (const std::string& whole : split(text, to == To::wheel_variant ? "\n," : "\n")) {
    const std::string_view line = whole;
    if (line.empty()) continue;
    if (to == To::conda && contains(line, "__cuda")) {
      add_conda_spec(line.substr(line.find("__cuda")), out);
      continue;
    }
    std::size_t at = line.find(to == To::wheel_variant ? kProperty : kRequire);
    if (to == To::wheel_variant) {
      if (at != std::string_view::npos)
        out.conditions.emplace_back(
            line.substr(at + kProperty.size(),
                        line.find_first_of(" \r\"]", at + kProperty.size()) - at - kProperty.size()));
      continue;
    }
    at = at == std::string_view::npos ? 0 : line.find('=', at) + 1;
    std::string condition(line.substr(at));
    std::erase(condition, '"');
    out.conditions.push_back(std::move(condition));
  }
  if (out.conditions.empty() && out.drivers.empty())
    throw UserError(fmt::format("--declared: `{}` declares nothing", sanitize(text.substr(0, 40))));
  return out;
}

Difference verify(const Served& served, const Declaration& declared) {
  Difference out;
  // A driver that is allowed, and too old to compile the PTX that a GPU depends on.
  const auto oldest = declared.drivers.empty() ? std::nullopt : oldest_driver(declared);
  for (std::size_t i = 0; i < served.known.size() && oldest && *oldest < served.cuda; ++i)
    if (served.compiled[i] && (declared.to == To::wheel_variant || promised(served.known[i], declared)))
      out.broken.push_back(fmt::format("{} with a driver for CUDA {} (its PTX is for {})",
                                       name(served.known[i]), name(*oldest), name(served.cuda)));
  if (declared.conditions.empty()) return out;
  if (declared.to == To::wheel_variant) {
    const std::set<std::string> promise(declared.conditions.begin(), declared.conditions.end());
    for (const std::string& arch : promise)
      if (!contains(served.archs, arch)) out.broken.push_back(arch);
    for (const std::string& arch : served.archs)
      if (!promise.contains(arch)) out.unused.push_back(arch);
    return out;
  }
  for (std::size_t i = 0; i < served.known.size(); ++i) {
    const bool wanted = promised(served.known[i], declared);
    if (wanted && !served.runs[i]) out.broken.push_back(name(served.known[i]));
    if (!wanted && served.runs[i]) out.unused.push_back(name(served.known[i]));
  }
  return out;
}

}  // namespace kshim::verbs
