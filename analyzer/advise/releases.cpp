// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"

namespace kshim::advise {
using data::ToolkitRow;
using data::toolkits;
using diagnose::Facts;

namespace {

using image::ComputeCapability;
using image::Version;

// The toolkits that build for all of these. A toolkit that drops an architecture does not take it up again,
// so the range has no holes.
struct ToolkitRange {
  const ToolkitRow* first = nullptr;
  const ToolkitRow* last = nullptr;
  bool open() const { return last == &toolkits().back(); }
};
ToolkitRange range_of(const std::vector<image::Arch>& archs) {
  ToolkitRange out;
  for (const ToolkitRow& row : toolkits()) {
    if (!std::ranges::all_of(archs, [&](image::Arch arch) { return builds_for(row, arch); })) continue;
    if (out.first == nullptr) out.first = &row;
    out.last = &row;
  }
  return out;
}

// "8.0 to 12.9", "12.8 and newer".
std::string toolkits_for(const std::vector<image::Arch>& archs) {
  const ToolkitRange range = range_of(archs);
  if (range.first == nullptr) return {};
  if (range.open()) return fmt::format("CUDA {} and newer", name(range.first->version));
  if (range.first == range.last) return fmt::format("CUDA {}", name(range.first->version));
  return fmt::format("CUDA {} to {}", name(range.first->version), name(range.last->version));
}

const data::VendorLibraryRow* vendor_of(const Facts& at) {
  return data::find_vendor_library(at.file.archive.empty() ? at.file.path : at.file.archive);
}

// cuBLAS of CUDA 13.0 for x86-64 lacks sm_87, which the toolkit knows: the release that knows the GPU is no
// answer where the file is of such a release itself.
bool range_tells(const Facts& at, bool part_of_cuda) {
  if (!part_of_cuda) return false;
  const ToolkitRow* own = data::toolkit_at_most(at.images.toolkit);
  return own == nullptr || !builds_for(*own, {*at.gpu.cc, image::Suffix::none});
}

// The tables have the package's releases, and each leaves the GPU out.
bool no_release_serves(const Facts& at) {
  const std::string distribution = wheel_of(at).distribution;
  const std::string platform = platform_of(at);
  return data::knows_wheels_of(distribution, platform) &&
         std::ranges::none_of(data::wheels(), [&](const data::WheelRow& row) {
           return row.distribution == distribution && row.platform == platform &&
                  serves(row, *at.gpu.cc) != image::Choice::none;
         });
}

// The GPU and all others that the file has nothing for.
std::vector<image::Arch> asked_archs(const Facts& at) {
  std::vector<image::Arch> out{{*at.gpu.cc, image::Suffix::none}};
  for (const ComputeCapability cc : at.gpu.also) out.push_back({cc, image::Suffix::none});
  std::ranges::sort(out);
  return out;
}

// Whether a library's package is of this project: nvidia-cudnn-cu12, tensorrt-cu13-libs, Debian's
// libcudnn9-dev and libnvinfer-plugin10. tensorrt-rtx and tritonclient are others.
bool is_package_of(std::string_view package, std::string_view project) {
  if (package.starts_with("lib")) {  // of the system
    package.remove_prefix(3);
    if (!package.starts_with(project)) return false;
    std::string_view rest = package.substr(project.size());
    for (const std::string_view part :
         {"-dispatch", "-lean", "-plugin", "-vc-plugin", "-bin", "-headers", "-static"})
      if (rest.starts_with(part)) rest.remove_prefix(part.size());
    return rest.empty() || core::is_digit(rest.front()) || rest == "-dev";
  }
  for (const std::string_view part : {"-libs", "-bindings", "-lean", "-dispatch"})
    if (package.starts_with("tensorrt") && package.ends_with(part)) package.remove_suffix(part.size());
  if (package.starts_with("nvidia-")) package.remove_prefix(7);
  return data::is_variant_of(package, project);
}

// The CUDA whose libraries serve the GPU, where it is of an older major version than the file's: what loads
// the file loads no library of that one. 0 where the file's own major version has releases that serve it.
unsigned older_major(const Facts& at, const std::vector<image::Arch>& archs) {
  const ToolkitRange range = range_of(archs);
  if (range.last == nullptr || range.open()) return 0;
  const unsigned major = range.last->version.major;
  // Of NVIDIA's packages, those of CUDA 13 have no number.
  const bool plain = at.package.name.is_nvidias() && !core::contains(at.package.name.normal(), "-cu1");
  return (at.images.toolkit.known() ? at.images.toolkit.major > major : plain && major < 13) ? major : 0;
}

}  // namespace

std::string toolkit_range(ComputeCapability cc) {
  return toolkits_for(std::vector<image::Arch>{{cc, image::Suffix::none}});
}
std::string toolkit_range(const say::BuildPlan& plan) {
  std::vector<image::Arch> archs;
  for (const say::PlannedArch& row : plan.archs) archs.push_back(row.arch);
  return toolkits_for(archs);
}

const ToolkitRow* last_before_dropped(const Facts& at) {
  const ToolkitRow* last = at.gpu.cc ? last_with_code_for(*at.gpu.cc) : nullptr;
  return last == &toolkits().back() ? nullptr : last;
}

std::optional<std::string> toolkits_with_code(ComputeCapability cc) {
  const ToolkitRow* last = last_with_code_for(cc);
  if (last != nullptr && last != &toolkits().back())
    return fmt::format("CUDA {} or older", name(last->version));
  const ToolkitRow* first = data::first_toolkit_for({cc, image::Suffix::none});
  return first == nullptr ? std::nullopt
                          : std::optional(fmt::format("CUDA {} or newer", name(first->version)));
}

bool is_vendors(const Facts& at) {
  const std::string_view file = at.file.archive.empty() ? at.file.path : at.file.archive;
  // NVIDIA's own wheels bring closed libraries, CUPTI's libcheckpoint.so among them.
  return vendor_of(at) != nullptr || data::find_probing_library(file) != nullptr ||
         at.package.name.is_nvidias();
}

std::optional<FixDraft> older_cuda_fix(std::string_view library, ComputeCapability device, unsigned there) {
  const data::LibrarySupportRow* last = data::last_library_for(library, device);
  const ToolkitRow* toolkit = data::last_toolkit_for({device, image::Suffix::none});
  if (last == nullptr || last->last == "0" || toolkit == nullptr || toolkit->version.major >= there)
    return std::nullopt;
  return fix_of("use-older-cuda-build", {{"cuda", std::to_string(toolkit->version.major)},
                                         {"minor", name(toolkit->version)},
                                         {"there", std::to_string(there)},
                                         {"library", std::string(library)},
                                         {"release", std::string(last->last)}});
}

void add_release_fix(const Facts& at, FixDrafts& fixes) {
  const std::optional<bool> torch =
      at.file.origin == diagnose::Origin::installed ? torch_serves(at) : std::nullopt;
  if (torch == false) {
    add_wheel_fix(at, fixes, "torch");
    if (!fixes.empty()) return;
  }
  if (!release_range(at).empty()) return add_listed_release_fix(at, fixes);
  // NVIDIA's libraries in a Python environment are those that PyTorch's build asks for.
  if (at.process.torch && at.file.origin == diagnose::Origin::installed && !torch)
    add_wheel_fix(at, fixes, "torch");
  // What loaded it, where a release of that serves the GPU.
  if (const std::string owner = data::wheel_name(at.call.extension).distribution;
      fixes.empty() && !owner.empty())
    add_wheel_fix(at, fixes, owner);
  if (fixes.empty() && at.package.manager == "pip") {
    add_wheel_fix(at, fixes);
    if (!fixes.empty()) return;
  }
  const data::VendorLibraryRow* row = vendor_of(at);
  const std::vector<image::Arch> archs = asked_archs(at);
  std::vector<std::string> names;
  for (const image::Arch& arch : archs) names.push_back(sm_name(arch));
  const std::string target = core::enumerate(names);
  std::string_view file = core::basename_of(at.file.archive.empty() ? at.file.path : at.file.archive);
  if (file.empty())
    file = at.package.name.empty() ? std::string_view(at.package.software)
                                   : std::string_view(at.package.name.shown());
  if (file.empty()) return;
  const bool part_of_cuda = row != nullptr && row->part_of_cuda;
  const std::string range = range_tells(at, part_of_cuda) ? toolkits_for(archs) : "";
  if (range.empty() && add_sibling_fix(at, fixes)) return;
  if (range.empty() && no_release_serves(at))
    return fixes.push_back(
        fix_of("do-without-library",
               {{"library", std::string(file)},
                {"why", fmt::format("none of its releases that kshim knows has code for {}", target)},
                {"note", ""}}));
  const unsigned older = range.empty() ? 0 : older_major(at, archs);
  FixDraft fix = fix_of(
      range.empty() ? "use-release-with-code"
      : older == 0  ? "use-release-with-code/cuda"
                    : "use-release-with-code/older",
      {{"file", std::string(file)},
       {"target", target},
       {"range", range},
       {"older", std::to_string(older)},
       {"why", part_of_cuda && at.images.toolkit.known()
                   ? fmt::format("the package comes built, without {}, although CUDA {} can build for {}",
                                 target, name(at.images.toolkit), names.size() == 1 ? "it" : "them")
                   : "it ships prebuilt, and its own release, not CUDA's, decides which GPUs it supports"}});
  fix.arguments = {{"package", std::string(file)},
                   {"cuda", range.empty() ? std::string() : name(range_of(archs).last->version)}};
  if (const data::GpuRow* gpu = gpu_of(at); gpu != nullptr && gpu->tegra)
    add_clause(fix.caveat, "for a Jetson, take the one that comes with its JetPack or for its platform");
  fixes.push_back(std::move(fix));
}

bool add_sibling_fix(const Facts& at, FixDrafts& fixes) {
  if (at.package.manager != "pip" || !at.gpu.cc || !at.package.source.empty() ||
      !data::is_plain(at.package.version))
    return false;
  const std::string& package = at.package.name.normal();
  const std::size_t word = package.rfind("-cu");
  if (word == std::string::npos || !data::is_variant_of(package, package.substr(0, word))) return false;
  const std::string project = package.substr(0, word);
  const std::string digits = package.substr(word + 3);
  const unsigned major = core::first_number<unsigned>(digits.substr(0, 2)).value_or(0);
  const ToolkitRange range = range_of(asked_archs(at));
  if (range.first == nullptr || digits.find_first_not_of("0123456789") != std::string::npos) return false;
  const unsigned first = std::max<unsigned>(range.first->version.major, 11);
  const unsigned last = range.last->version.major;
  if (last < first || (first <= major && major <= last)) return false;
  const unsigned other = major > last ? last : first;
  // A name with a minor version is published for 11.8, 12.6 or 12.8, and 13.0.
  const std::string_view minor = digits.size() == 2 ? ""
                                 : other == 11      ? "8"
                                 : other == 12      ? (major > last ? "6" : "8")
                                                    : "0";
  const std::string sibling = fmt::format("{}-cu{}{}", project, other, minor);
  const std::string platform = platform_of(at);
  const data::WheelRow* row =
      data::find_wheel(sibling, at.package.version, fmt::format("cu{}{}", other, minor), platform);
  if (row == nullptr && data::knows_wheels_of(package, platform)) return false;
  if (row != nullptr && serves(*row, *at.gpu.cc) == image::Choice::none) return false;
  std::vector<std::string> names;
  std::vector<std::string> numbers;
  for (const image::Arch& arch : asked_archs(at)) {
    names.push_back(sm_name(arch));
    numbers.push_back(name(arch.cc));
  }
  std::string file = sibling;
  std::ranges::replace(file, '-', '_');
  fixes.push_back(
      fix_of(row != nullptr ? "install-sibling" : "look-at-sibling", {{"sibling", sibling},
                                                                      {"package", at.package.name.shown()},
                                                                      {"version", at.package.version},
                                                                      {"gpu", core::enumerate(names)},
                                                                      {"number", core::join(numbers, ",")},
                                                                      {"file", file},
                                                                      {"cuda", std::to_string(other)}}));
  return true;
}

std::string_view listed_library(const Facts& at) {
  struct Name {
    std::string_view name;
    std::string_view library;
  };
  constexpr Name kNames[] = {
      {"cudnn", "cuDNN"}, {"nvinfer", "TensorRT"}, {"tensorrt", "TensorRT"}, {"triton", "Triton"}};
  const std::string software = data::normal_name(at.package.software);
  for (const Name& row : kNames)
    if (software == row.name) return row.library;
  for (const Name& row : kNames)
    if (is_package_of(at.package.name.normal(), row.name)) return row.library;
  for (const Name& row : kNames)
    if (data::is_library(at.file.archive.empty() ? at.file.path : at.file.archive, row.name))
      return row.library;
  return {};
}

std::string release_range(const Facts& at) {
  const std::string_view library = listed_library(at);
  if (library.empty() || !at.gpu.cc) return {};
  if (!at.package.version.empty() &&
      data::library_supports(library, at.package.version, *at.gpu.cc) == data::Support::yes)
    return {};
  const data::LibrarySupportRow* last = data::last_library_for(library, *at.gpu.cc);
  if (last == nullptr) return {};
  if (last->last == "0") return fmt::format(">={}", data::first_library_for(library, *at.gpu.cc)->first);
  // The release after the last: 9.10 gives <9.11.
  const std::size_t dot = last->last.rfind('.');
  const unsigned minor = core::first_number<unsigned>(last->last.substr(dot + 1)).value_or(0);
  return fmt::format("<{}{}", last->last.substr(0, dot + 1), minor + 1);
}

void add_listed_release_fix(const Facts& at, FixDrafts& fixes) {
  const std::string_view library = listed_library(at);
  const std::string range = release_range(at);
  const data::InstallerRow* installer = data::find_installer(library, "pip");
  if (range.empty()) return;
  const bool older = range.front() == '<';
  const std::string& package = at.package.name.normal();
  if (older)
    if (auto fix = older_cuda_fix(library, *at.gpu.cc, cuda_of(package.substr(package.rfind('-') + 1)).major))
      return fixes.push_back(std::move(*fix));
  const data::LibrarySupportRow* row =
      older ? data::last_library_for(library, *at.gpu.cc) : data::first_library_for(library, *at.gpu.cc);
  FixDraft fix = fix_of(older ? "use-supported-release/older" : "use-supported-release/newer",
                        {{"library", std::string(library)},
                         {"release", std::string(older ? row->last : row->first)},
                         {"cc", name(*at.gpu.cc)}});
  fix.arguments = {{"package", std::string(library)}, {"release", range}};
  // PyPI has TensorRT from 8.6 on.
  const bool on_pypi = library != "TensorRT" || !older || data::compare_releases(row->last, "8.6") >= 0;
  // From 8.6 on, pip's are for CUDA 12 and newer.
  const bool beyond_driver =
      library == "TensorRT" && !older && at.driver.cuda.known() && at.driver.cuda.major < 12;
  if (beyond_driver)
    fix.caveat = fmt::format(
        "take its build for CUDA {}, which this driver serves, from NVIDIA's archive: what pip installs is "
        "for CUDA 12 or newer",
        at.driver.cuda.major);
  if (installer != nullptr && on_pypi && !beyond_driver && at.package.manager != "conda" &&
      at.package.manager != "dpkg" && at.package.manager != "rpm") {
    // cuDNN for CUDA 13 begins after the releases that served what 7.5 came after.
    const bool cuda13 = !older && (at.images.toolkit.major >= 13 || at.package.name.normal().ends_with("13"));
    fix.steps.push_back(
        say::command_of(installer->command, {{"range", range}, {"major", cuda13 ? "13" : "12"}}));
    fix.caveat = installer->caveat;
  } else if (at.package.manager == "dpkg" && library == "TensorRT") {
    fix.steps.push_back(
        older
            ? say::command_of("sudo apt-get install 'tensorrt={last}.*'", {{"last", std::string(row->last)}})
            : say::command_of("sudo apt-get update && sudo apt-get install --only-upgrade tensorrt"));
    fix.caveat = "NVIDIA's repository for the system has each release; a container: an image of that release";
  } else if (at.package.manager == "conda") {
    fix.steps.push_back(
        say::command_of("conda install -c conda-forge '{library}{range}'",
                        {{"library", library == "cuDNN" ? "cudnn" : "tensorrt"}, {"range", range}}));
  } else if (!on_pypi) {
    fix.caveat = "NVIDIA keeps the old releases in its archive; PyPI begins with 8.6";
  }
  if (!older) add_clause(fix.caveat, row->note);
  fixes.push_back(std::move(fix));
}

}  // namespace kshim::advise
