// SPDX-License-Identifier: Apache-2.0
// What the advice depends on, as far as a log tells.
#include <re2/re2.h>

#include <cmath>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::diagnose {
using core::Assumed;
using core::Cause;
using data::find_wheel;
using data::ToolkitRow;
using input::LogFacts;
using input::LogMatch;
using input::PackageMention;

namespace {

// What refused, and what it was asked for.
void set_compiler(const LogFacts& clues, const LogMatch& hit, Facts& at) {
  CompilerFacts& compiler = at.call.compiler.emplace();
  compiler.name = group(hit, "tool");
  if (compiler.name.empty() || compiler.name == "nvrtc")
    compiler.name = hit.who.empty() ? "the compiler" : hit.who;
  if (const auto asked = image::parse_arch(group(hit, "asked"))) compiler.asked = *asked;
  compiler.version = clues.toolkit;
}

image::Version version_of(const std::string& text) {
  return image::parse_version(text).value_or(image::Version{});
}

// "Unsupported .version 8.5; current version is '8.2'" need not be the line that decides.
void set_ptx(const LogFacts& clues, Facts& at) {
  for (const LogMatch& hit : clues.hits) {
    if (group(hit, "ptx").empty() || group(hit, "reads").empty()) continue;
    at.images.ptx = version_of(group(hit, "ptx"));
    at.driver.reads = version_of(group(hit, "reads"));
    // The driver of that number reads this PTX: the CUDA version in the log is another machine's.
    const ToolkitRow* numbered = data::toolkit_of_branch(data::branch_of(at.driver.module));
    if (numbered != nullptr && numbered->isa == at.driver.reads) at.driver.cuda = numbered->version;
    return;
  }
  at.images.ptx = clues.ptx;
  if (clues.ptx.known()) return;
  // Else what the published package has.
  const data::WheelRow* row =
      find_wheel(at.package.name.normal(), at.package.version, at.package.variant, platform_of(at));
  if (row != nullptr) at.images.ptx = version_of(std::string(row->isa));
}

// Whose cache it is, by what compiles there.
void set_cache(const LogFacts& clues, Facts& at) {
  at.file.cache = "the compiler";
  for (const data::CacheRow& row : data::caches()) {
    if (!clues.compiler.starts_with(row.who)) continue;
    at.file.cache = row.who;
  }
}

// What the runtime is, or what a container's image demands.
void set_runtime(const LogMatch* hit, Facts& at) {
  const image::Version asked = hit != nullptr ? version_of(group(*hit, "needcuda")) : image::Version{};
  at.driver.asked_by_container = asked.known();
  at.driver.runtime = asked.known() ? asked : at.images.toolkit;
}

// What is built on PyTorch and lacks the code in this release: another PyTorch would leave it so.
const PackageMention* lacking_extension(const LogFacts& clues, const Facts& at) {
  const auto lacks = [&](const PackageMention& each) {
    return each.name != "torch" && !each.from_source && !clues.works.contains(each.name) &&
           data::is_without_code(each.name, each.version, *at.gpu.cc, platform_of(at));
  };
  const auto found = std::find_if(clues.packages.begin(), clues.packages.end(), lacks);
  return found == clues.packages.end() ? nullptr : &*found;
}

struct LibraryFile {
  std::string name;   ///< cudnn
  std::string major;  ///< 8
};

// "libcudnn_ops_infer.so.8", "cudart64_110.dll".
std::optional<LibraryFile> library_of(const std::string& file) {
  static const RE2 kFile(
      R"((?i)(?:^|[/\\])(?:lib)?(cudnn|cudss|cublas|cudart|cufft|curand|cusolver|cusparseLt|cusparse|nvrtc|nvJitLink|nccl|nvinfer)[a-z_]*(?:\.so\.|64_)(\d{1,2}))");
  LibraryFile out;
  if (!RE2::PartialMatch(file, kFile, &out.name, &out.major)) return std::nullopt;
  out.name = core::to_lower(out.name);
  return out;
}

constexpr std::array kNumbered = {"cublas", "cudart", "nvrtc", "nvjitlink"};  // by CUDA's major version

// The CUDA whose library has this number, where one alone has: libcufft.so.11 is of 12. 0: it does not tell.
unsigned cuda_of(const LibraryFile& file) {
  const unsigned number = core::first_number<unsigned>(file.major).value_or(0);
  constexpr std::array kOnce = {"cusolver", "cusparse"};  // up to CUDA 10
  constexpr unsigned kLast = 10;
  if (core::contains(kNumbered, file.name) || (number <= kLast && core::contains(kOnce, file.name)))
    return number;
  if (file.name != "cufft" && !core::contains(kOnce, file.name)) return 0;
  std::set<unsigned> found;
  for (const data::LibraryWheelRow& row : data::library_wheels())
    if (core::to_lower(row.stem) == "lib" + core::to_lower(file.name) && row.number == file.major)
      found.insert(static_cast<unsigned>(row.cuda));
  return found.size() == 1 ? *found.begin() : 0;
}

// The major version of that library that the log lists as there, or of CUDA, whose number it has. What a
// wheel of PyTorch is for goes before a toolkit, which no wheel loads.
std::string listed_major(const LogFacts& clues, const std::string& name, bool numbered) {
  const bool counted_apart = numbered && !core::contains(kNumbered, name);
  if (const auto there = clues.libraries.find(name); there != clues.libraries.end() && !counted_apart)
    return there->second;
  if (name == "cudnn") {
    const PackageMention* package = find_package(clues, "cuDNN");
    return package == nullptr ? std::string() : package->version.substr(0, package->version.find('.'));
  }
  const PackageMention* torch = find_package(clues, "torch");
  if (numbered && torch != nullptr && torch->variant.starts_with("cu1") && torch->variant.size() > 3)
    return torch->variant.substr(2, 2);
  return numbered && clues.toolkit.known() ? std::to_string(clues.toolkit.major) : std::string();
}

// The release of CUDA in the name of NVRTC's builtins: "libnvrtc-builtins.so.12.8",
// "nvrtc-builtins64_131.dll".
std::string release_of_builtins(const std::string& file) {
  static const RE2 kBuiltins(R"(nvrtc-builtins(?:\.so\.|64_)(1\d)\.?(\d)\b)");
  std::string major;
  std::string minor;
  return RE2::PartialMatch(file, kBuiltins, &major, &minor) ? major + '.' + minor : std::string();
}

// The package of pip's that has the library of a plain name, "cuSPARSE", where the log lists it as installed.
std::string installed_library(const LogFacts& clues, const std::string& name) {
  static const RE2 kPlain(R"((?i)cu[a-z]+|nvjitlink)");
  if (!RE2::FullMatch(name, kPlain)) return {};
  const std::string begin = fmt::format("nvidia-{}", core::to_lower(name));
  const auto found = std::ranges::find_if(clues.installed, [&](const auto& each) {
    return each.first == begin || each.first.starts_with(begin + "-cu");
  });
  return found == clues.installed.end() ? std::string() : found->first;
}

// Every library that the log says is missing, as the packages of pip's that have them.
std::string missing_wheels(const LogFacts& clues, const Facts& at) {
  std::vector<std::string> out{fmt::format("'{}'", at.call.said.at("library_wheel"))};
  for (const LogMatch& hit : clues.hits) {
    if (hit.cause != Cause::library_not_found || hit.id != at.call.message) continue;
    const auto* row = data::find_library_wheel(group(hit, "lib"), at.images.toolkit.major);
    const std::string wheel =
        row != nullptr ? fmt::format("'{}{}'", row->package, row->range) : std::string();
    if (!wheel.empty() && !core::contains(out, wheel)) out.push_back(wheel);
  }
  return core::join(out, " ");
}

// Packages of NVIDIA's for two major versions of CUDA; the process can load one. Those that stay are of
// PyTorch's, else the newer.
void say_wheels(const LogFacts& clues, Facts& at) {
  std::set<std::string> majors;
  for (const std::string& wheel : clues.cuda_wheels) majors.insert(wheel.substr(wheel.size() - 2));
  if (majors.size() != 2) return;
  const std::string own = clues.toolkit.known() ? std::to_string(clues.toolkit.major) : std::string();
  const std::string kept = majors.contains(own) ? own : *majors.rbegin();
  std::vector<std::string> out;
  std::vector<std::string> in;
  for (const std::string& wheel : clues.cuda_wheels) {
    if (wheel.ends_with(kept)) continue;
    out.push_back(wheel);
    in.push_back(wheel.substr(0, wheel.size() - 2) + kept);
  }
  at.call.said["remove"] = core::join(out, " ");
  at.call.said["keep"] = core::join(in, " ");
  at.call.said["kept_cuda"] = kept;
}

// nvidia-smi reads its CUDA version from the libcuda that it loads: beyond that of the driver's own branch,
// it is one of a compat package.
bool is_ahead_of_its_driver(const LogFacts& clues) {
  if (clues.kernel_module.empty() || !clues.driver.known()) return false;
  unsigned branch = 0;
  const char* end = clues.kernel_module.data() + clues.kernel_module.size();
  std::from_chars(clues.kernel_module.data(), end, branch);
  const ToolkitRow* own = data::toolkit_of_branch(branch);
  return own != nullptr && own->version < clues.driver;
}

// The driver that brought a function of libcuda; empty where no table tells.
std::string driver_with(const std::string& function) {
  for (const data::DriverFunctionsRow& row : data::driver_functions()) {
    if (!core::contains(core::split(std::string(row.functions), " "), function)) continue;
    const ToolkitRow* toolkit = data::toolkit_at_most(row.cuda);
    if (toolkit != nullptr && toolkit->version == row.cuda) return std::string(toolkit->driver);
  }
  return {};
}

// Whose memory it is that an allocation found used up.
std::string_view holder_of(const input::GpuMemory& memory) {
  if (memory.free != 0 && memory.free >= std::max(memory.asked, memory.total / 2)) return "memory-free";
  if (memory.had_room()) return "memory-free";
  if (memory.asked > memory.total || memory.own > memory.total) return "memory-beyond";
  if (memory.reserved >= std::max(memory.asked, memory.total / 10)) return "memory-reserved";
  if (memory.others >= memory.total / 4 && memory.others >= memory.asked) return "memory-other";
  return memory.own != 0 ? "memory-own" : "";
}

void say_memory(const LogFacts& clues, Facts& at) {
  const input::GpuMemory& memory = clues.memory;
  const bool counted = memory.own != 0 || memory.free >= std::max<std::uint64_t>(memory.asked, 1) ||
                       memory.asked > memory.total || memory.others > memory.total / 2;
  if (!memory.known() || !counted || at.cause != Cause::out_of_memory) return;
  if (const std::string_view holder = holder_of(memory); !holder.empty())
    at.process.shows.emplace_back(holder);
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"asked", memory.asked}, {"total", memory.total},   {"free", memory.free},
      {"own", memory.own},     {"others", memory.others}, {"reserved", memory.reserved}};
  for (const auto& [word, size] : sizes)
    if (size != 0) at.call.said[word] = memory_text(size);
}

// Another language's stack, and nothing of a Python environment beside it.
bool is_of_another_language(const LogFacts& clues, const LogMatch* hit) {
  constexpr std::array kLanguages = {"rust", "java", "node", "go", "dotnet", "julia", "r"};
  return !clues.has("package-manager") && (hit == nullptr || hit->frames.empty()) &&
         std::ranges::any_of(kLanguages, [&](const char* each) { return clues.has(each); });
}

// Whether what the line says that the code was compiled for stands in the list beside it.
bool is_listed(const LogFacts& clues, const LogMatch* message) {
  const std::string hundreds = message != nullptr ? group(*message, "compiled") : "";
  if (hundreds.size() < 3) return false;
  // 520 is what nvcc takes where nothing is asked for: the build was for no GPU, and one for this GPU helps.
  if (hundreds == "520") return false;
  const auto arch = image::parse_arch(hundreds.substr(0, hundreds.size() - 1));
  return arch && std::ranges::any_of(clues.lists, [&](const input::ImageList& list) {
           return std::ranges::any_of(
               list.images, [&](const image::Candidate& image) { return image.arch.cc == arch->cc; });
         });
}

}  // namespace

void say_library_wheel(Facts& at, unsigned cuda) {
  const auto missing = library_of(at.file.path);
  const data::LibraryWheelRow* row =
      missing ? data::find_library_wheel(fmt::format("lib{}.so.{}", missing->name, missing->major), cuda)
              : data::find_library_wheel(at.file.path, cuda);
  if (row == nullptr) return;
  at.call.said["library_wheel"] = fmt::format("{}{}", row->package, row->range);
  at.call.said["library_wheels"] = fmt::format("'{}{}'", row->package, row->range);
  at.call.said["library_folder"] = row->folder;
}

namespace {

// The folder of a file that the log shows to be there: of that name, or of a longer one of its version. Where
// the loader looks by itself, it is no answer.
std::string folder_of(const LogFacts& clues, const std::string& file) {
  for (auto each = clues.there.lower_bound(file); !file.empty() && each != clues.there.end(); ++each) {
    if (!each->first.starts_with(file)) break;
    const bool same = each->first.size() == file.size() || each->first[file.size()] == '.';
    if (same && !each->second.starts_with("/usr/lib") && !each->second.starts_with("/lib"))
      return each->second;
  }
  return {};
}

constexpr std::string_view kGpuCount = "gpu_count";

// Whether a GPU of a higher number was asked for than so many have.
bool is_beyond(const LogFacts& clues, const std::string& count) {
  const int gpus = core::first_number<int>(count).value_or(0);
  return std::ranges::any_of(clues.ordinals,
                             [&](const input::OrdinalMention& each) { return each.ordinal >= gpus; });
}

// Words that fixes may ask for: what the message names, and what is listed beside it.
void set_said(const LogFacts& clues, const LogMatch* message, Facts& at) {
  constexpr std::array kWords = {"want",   "have",     "variable", "needs",   "symbol",   "named",
                                 "limit",  "api",      "total",    "min_any", "bindings", "bitcode",
                                 "header", "iterator", "policy",   "source",  "vsnew",    "vsold"};
  if (message != nullptr)
    for (const char* word : kWords)
      // A message that is printed again may be shorter; ID_pip is what pip says beside it.
      for (const LogMatch& hit : clues.hits)
        if (std::string text = group(hit, word);
            (hit.id == message->id || hit.id == message->id + "_pip") && !text.empty())
          at.call.said.emplace(word, std::move(text));
  if (const auto symbol = at.call.said.find("symbol"); symbol != at.call.said.end())
    if (std::string driver = driver_with(symbol->second.substr(0, symbol->second.find("_v")));
        !driver.empty())
      at.call.said["driver"] = std::move(driver);
  // "Free memory (19.77/22.05 GiB)": what part of it is free, in hundredths.
  if (at.call.said.contains("total") && at.call.said.contains("have")) {
    const auto size = [&](const char* word) { return std::strtod(at.call.said.at(word).c_str(), nullptr); };
    const double part = std::floor(size("have") / std::max(size("total"), 1e-3) * 100) / 100;
    at.call.said["fraction"] = fmt::format("{:.2f}", part);
    // Less than that is no room for a model: another process holds it.
    constexpr double kRoom = 0.6;
    if (part < kRoom) at.process.shows.emplace_back("memory-other");
  }
  // The wheels of NVIDIA's came with JAX 0.4: before it, only what the loader finds counts.
  if (at.package.software == "jax" && !at.package.version.empty() &&
      data::compare_releases(at.package.version, "0.4") < 0)
    at.call.said["old_jax"] = at.package.version;
  if (const auto missing = library_of(at.file.path); missing && at.cause == Cause::library_not_found) {
    at.call.said["library_name"] = missing->name == "cudnn" ? "cuDNN" : missing->name;
    at.call.said["library_major"] = missing->major;
    const unsigned cuda = cuda_of(*missing);
    const std::string listed = listed_major(clues, missing->name, cuda != 0);
    const unsigned number = core::first_number<unsigned>(missing->major).value_or(0);
    const unsigned wanted = cuda != 0 ? cuda : number;
    const unsigned there = core::first_number<unsigned>(listed).value_or(0);
    const ToolkitRow* last = data::toolkit_at_most({static_cast<std::uint16_t>(cuda), 99});
    if (cuda != 0) at.call.said["library_cuda"] = std::to_string(cuda);
    // libcublas.so.10.0: up to CUDA 10, its release.
    const std::size_t release = at.file.path.rfind(missing->major + '.');
    if (cuda != 0 && cuda <= 10 && release != std::string::npos)
      at.call.said["old_cuda"] = at.file.path.substr(release, missing->major.size() + 2);
    if (last != nullptr && last->version.major == cuda)
      at.call.said["cuda_packages"] = fmt::format("{}-{}", last->version.major, last->version.minor);
    at.call.said["library_file"] = core::basename_of(at.file.path);
    if (missing->name == "cudnn") {
      const unsigned of = at.images.toolkit.known() ? at.images.toolkit.major : 12;
      at.call.said["cudnn_major"] = missing->major;
      at.call.said["cudnn_package"] = number < 9 ? "libcudnn8" : fmt::format("libcudnn9-cuda-{}", of);
    }
    if (there == 0 || there == wanted) say_library_wheel(at, at.images.toolkit.major);
    if (there != 0 && there != wanted) at.call.said[there > wanted ? "newer_there" : "older_there"] = listed;
  }
  const std::size_t plus = at.package.torch_build.find("+cu");
  if (plus != std::string::npos && !at.package.torch_build.ends_with("cuNNN")) {
    at.call.said["torch_release"] = at.package.torch_build.substr(0, plus);
    at.call.said["torch_variant"] = at.package.torch_build.substr(plus + 1);
  }
  if (at.call.said.contains("library_wheel")) at.call.said["library_wheels"] = missing_wheels(clues, at);
  if (std::string own = installed_library(clues, at.file.path); !own.empty())
    at.call.said["installed_library"] = std::move(own);
  if (std::string release = release_of_builtins(at.file.path); !release.empty())
    at.call.said["builtins_cuda"] = std::move(release);
  if (std::string folder = folder_of(clues, std::string(core::basename_of(at.file.path))); !folder.empty())
    at.call.said["folder"] = std::move(folder);
  if (std::string folder = folder_of(clues, "nvcc"); folder.ends_with("/bin"))
    at.call.said["toolkit_folder"] = folder.substr(0, folder.size() - 4);
  if (clues.toolkit.known()) {
    at.call.said["cuda_dot"] = name(clues.toolkit);
    at.call.said["cuda_dash"] = fmt::format("{}-{}", clues.toolkit.major, clues.toolkit.minor);
  }
  if (clues.has("mig") && !clues.said.contains("mig_uuid")) at.call.said.emplace("mig_uuid", "MIG-UUID");
  for (const auto& [word, text] : clues.said)
    if (word != kGpuCount || is_beyond(clues, text)) at.call.said.emplace(word, text);
  say_wheels(clues, at);
  if (is_ahead_of_its_driver(clues)) {
    at.call.said["module"] = clues.kernel_module;
    at.call.said["own_cuda"] = name(data::toolkit_of_branch(data::branch_of(clues.kernel_module))->version);
  }
  if (clues.driver_releases.size() == 2) at.call.said["releases"] = core::enumerate(clues.driver_releases);
  if (const auto visible = clues.env.find("CUDA_VISIBLE_DEVICES"); visible != clues.env.end()) {
    const auto commas = std::ranges::count_if(visible->second, [](char c) { return c == ',' || c == ';'; });
    if (!visible->second.empty()) at.call.said["visible"] = std::to_string(commas + 1);
  }
  const data::GpuRow* gpu = at.gpu.cc ? data::find_gpu(*at.gpu.cc) : nullptr;
  // A program of a newer CUDA than the driver's own asks for the compat library.
  constexpr int kNoCompat = 804;
  const bool newer = at.call.code == kNoCompat && clues.toolkit.known() && clues.driver.known() &&
                     clues.driver < clues.toolkit && !clues.kernel_module.empty();
  if (newer) {
    at.call.said["module"] = clues.kernel_module;
    at.call.said["own_cuda"] = name(clues.driver);
  }
  const std::pair<const char*, bool> shown[] = {
      {"jetson", gpu != nullptr && gpu->tegra},
      {"compat", newer || is_ahead_of_its_driver(clues)},
      {"arch-listed", is_listed(clues, message)},
      {"arch-not-listed", !is_listed(clues, message)},
      {"released-program", at.package.released},
      {"not-python", is_of_another_language(clues, message)},
      {"driver-read", clues.driver.known() || !clues.kernel_module.empty()}};
  at.process.shows.insert(at.process.shows.end(), clues.shows.begin(), clues.shows.end());
  for (const auto& [what, is] : shown)
    if (is && !core::contains(at.process.shows, what)) at.process.shows.emplace_back(what);
  say_memory(clues, at);
}

// The program at work, by the failing line, or by another of the same code that has a source file.
void set_program(const LogFacts& clues, const LogMatch* failed, Facts& at) {
  if (failed == nullptr) return;
  for (const LogMatch& hit : clues.hits)
    if (at.package.project.empty() && hit.code == failed->code) at.package.project = hit.project;
  if (at.package.project.empty()) at.package.project = program_at_work(clues, *failed);
  at.package.around = program_around(clues, *failed);
  // Of a frozen program, nobody exchanges a part.
  if (clues.has("frozen") && !at.package.around.empty()) at.package.project = at.package.around;
  if (clues.has("compose")) at.process.service = failed->speaker;
}

// The code for the GPU that a published release is known to have; its own list says the same.
bool has_code(const LogFacts& clues, const PackageMention& package, const Facts& at) {
  if (!at.gpu.cc || package.from_source) return false;
  for (const input::ImageList& list : clues.lists)
    if (list.by_itself && list.owner == package.name)
      return image::select_image(list.images, {*at.gpu.cc, {}, {}}).choice == image::Choice::sass;
  const std::string platform = platform_of(at);
  const std::string variant = !package.variant.empty() || !clues.toolkit.known()
                                  ? package.variant
                                  : fmt::format("cu{}{}", clues.toolkit.major, clues.toolkit.minor);
  const data::WheelRow* row = find_wheel(package.name, package.version, variant, platform);
  if (row == nullptr && platform.starts_with("windows"))
    row = find_wheel(package.name, package.version, variant, data::kLinux);
  return row != nullptr && data::is_plain(package.version) && serves(*row, *at.gpu.cc) == image::Choice::sass;
}

// What works is not what lacks the code: another package is, where one is left.
const PackageMention* suspect_beside(const LogFacts& clues, const LogMatch* hit,
                                     const PackageMention* package, Facts& at) {
  if (package == nullptr || package->name != "torch" || !has_trait(at.cause, core::cause_trait::code_missing))
    return package;
  at.package.works = clues.works.contains(package->name) || has_code(clues, *package, at);
  if (!at.package.works) return package;
  const PackageMention* other = package_beside(clues, hit, package->name);
  if (other == nullptr) return package;
  at.package.works = false;
  return other;
}

// An extension that is built for one release of PyTorch comes with the one that is to be installed.
const PackageMention* with_its_torch(const LogFacts& clues, const PackageMention* package, Facts& at) {
  std::vector<std::string> beside;
  for (const PackageMention& each : clues.packages)
    if (input::goes_with_torch(each.name)) beside.emplace_back(each.known_as());
  at.package.beside = core::join(beside, " ");
  const PackageMention* torch = find_package(clues, "torch");
  const bool paired = package != nullptr && input::goes_with_torch(package->name);
  return paired && torch != nullptr && at.gpu.cc && !torch->version.empty() && !has_code(clues, *torch, at) &&
                 data::is_without_code("torch", torch->version, *at.gpu.cc, platform_of(at))
             ? torch
             : package;
}

bool is_released(std::string_view package) {
  const auto rows = data::software();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row.package == package && row.released; });
}

}  // namespace

std::string torch_build_of(const LogFacts& clues) {
  const PackageMention* torch = find_package(clues, "torch");
  if (torch == nullptr || torch->version.empty()) return {};
  std::string variant = torch->variant;
  if (variant.empty()) {
    // A toolkit beside it need not be the CUDA of a wheel of it.
    variant = fmt::format("cu{}{}", clues.toolkit.major, clues.toolkit.minor);
    const data::WheelRow* row = find_wheel("torch", torch->version, variant, data::kLinux);
    if (row == nullptr || row->variant != variant) variant = "cuNNN";
  }
  return fmt::format("{}+{}", torch->version, variant);
}

std::string memory_text(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024;
  const double size = static_cast<double>(bytes) / kMiB;
  return size >= 1024 ? fmt::format("{:.2f} GiB", size / 1024) : fmt::format("{:.0f} MiB", size);
}

std::shared_ptr<const Facts> facts_about(const LogFacts& clues, const Judgment& judgment,
                                         const core::Finding& finding) {
  Facts at = facts_about(finding, judgment.facts);
  at.driver.module = clues.kernel_module;
  at.driver.cuda = clues.driver;
  at.images.toolkit = clues.toolkit;
  at.images.toolkit_how = clues.toolkit_assumed ? "as --assume-toolkit says" : "the log names it";
  at.process.python = clues.has("python");
  at.process.python_version = clues.python_release;
  at.process.torch = find_package(clues, "torch") != nullptr;
  at.package.torch_build = torch_build_of(clues);
  at.file.links_torch = at.process.torch;
  if (judgment.hit != nullptr) at.call.extension = package_that_called(clues, *judgment.hit);
  set_program(clues, judgment.hit, at);
  at.package.platform = clues.has("windows") ? "windows x86_64" : "";
  at.package.build_system = clues.build_system;
  at.package.arch_variable = clues.arch_variable;
  at.package.arch_dots = clues.arch_dots;
  at.package.arch_flags = clues.arch_flags;
  at.package.build_command = clues.build_command;
  at.process.container_image = clues.container_image;
  at.process.installed = clues.installed;
  at.package.released =
      clues.has("released") && clues.build_system.empty() && (!clues.has("python") || clues.packages.empty());
  at.process.interpreter = clues.own_python;
  // A file of its own that was looked at is not PyTorch's.
  const PackageMention* package = package_that_failed(clues, judgment.hit);
  // What a package says that it was built for tells of no other.
  const PackageMention torch_itself{"torch", "torch", {}, {}, 0, false};
  if (judgment.list != nullptr && judgment.list->by_itself) {
    if (const PackageMention* owner = find_package(clues, judgment.list->owner))
      package = owner;
    else if (judgment.list->owner == torch_itself.name)
      package = &torch_itself;
  }
  const bool another = package != nullptr && package->name == "torch" && judgment.list != nullptr &&
                       !judgment.list->by_itself && judgment.list->owner.find("torch") == std::string::npos;
  // Of no known GPU, what was built against PyTorch is likelier than PyTorch's own release.
  if (package != nullptr && package->name == "torch" && !at.gpu.cc) {
    const auto built =
        std::find_if(clues.packages.begin(), clues.packages.end(), [](const PackageMention& each) {
          return std::ranges::any_of(data::workarounds(), [&](const auto& row) {
            return core::contains(core::split(row.package, " "), each.name) &&
                   core::asks_for(row.command, "torch_build");
          });
        });
    if (built != clues.packages.end()) package = &*built;
  }
  if (package != nullptr && package->name == "torch" && at.gpu.cc) {
    if (const PackageMention* extension = lacking_extension(clues, at)) package = extension;
    // vLLM asks for one release of PyTorch, and has most of the kernels that it starts.
    const PackageMention* vllm = find_package(clues, "vllm");
    if (vllm != nullptr && finding.cause == Cause::no_image_for_arch && !clues.works.contains(vllm->name))
      package = vllm;
  }
  // An extension that no table knows was built against PyTorch, here or by the maker of its wheel.
  PackageMention unknown;
  // What is imported and finds no library is of the innermost frame.
  const bool imported = judgment.hit != nullptr && finding.cause == Cause::library_not_found &&
                        !judgment.hit->frames.empty() && !at.call.extension.empty();
  const bool by_frame = judgment.hit != nullptr && (imported || is_failed_by_frame(clues, *judgment.hit));
  if (by_frame && (package == nullptr || package->name == "torch")) {
    unknown.name = unknown.written = at.call.extension;
    package = &unknown;
    at.file.links_torch = true;
  }
  if (clues.has("frozen")) {
    package = nullptr;
    at.call.extension.clear();
    at.package.released = true;
  }
  package = suspect_beside(clues, judgment.hit, with_its_torch(clues, package, at), at);
  at.package.minimum = minimum_of(clues, package != nullptr ? package->name : std::string());
  const LogMatch* message = message_behind(clues, judgment);
  // The library that says that it refuses is not another one of NVIDIA's that stands in a path.
  if (package != nullptr && message != nullptr && finding.cause == Cause::library_refuses &&
      message->who.starts_with("cu") && message->who != package->name &&
      data::find_library_support(package->name, "") != nullptr)
    package = nullptr;
  if (package != nullptr && !another) {
    at.package.software = package->name;
    at.package.vendored = input::is_vendored(package->name);
    // "llama.cpp" has ggml within, and is what its user installs.
    if (at.package.vendored && !package->written.starts_with(package->name))
      at.package.project = package->written;
    at.package.released = at.package.released || is_released(package->name);
    at.package.from_source = package->from_source;
    at.package.version = package->version;
    at.package.variant = package->variant;
    // "PyTorch 1.8.1, CUDA 10.2": the build that is there, which is not to be installed again.
    if (package->name == "torch" && at.package.variant.empty() && at.gpu.cc && clues.toolkit.known()) {
      const std::string variant = fmt::format("cu{}{}", clues.toolkit.major, clues.toolkit.minor);
      const data::WheelRow* row = find_wheel("torch", package->version, variant, platform_of(at));
      if (row != nullptr && row->variant == variant && serves(*row, *at.gpu.cc) == image::Choice::sass)
        at.package.variant = variant;
    }
    const bool of_pip = package->known_as() != package->name;  // cupy-cuda12x, onnxruntime-gpu
    // "NCCL version 2.21.5+cuda11.8" is how NCCL names itself.
    const bool of_wheel = !package->variant.empty() && !package->variant.starts_with("cuda");
    const bool named = clues.has("python") && data::comes_by_pip(package->known_as());
    if ((named || of_pip || of_wheel || package->of_conda) && !package->from_source) {
      at.package.name = package->known_as();
      at.file.origin = Origin::installed;
    }
    if (package->of_conda) at.package.manager = "conda";
  }
  at.package.builds = clues.has("builds") || !clues.build_system.empty() || !clues.arch_variable.empty() ||
                      !clues.build_command.empty() || at.package.from_source || !at.images.list.empty() ||
                      clues.env.contains("TORCH_CUDA_ARCH_LIST");
  // A program of a name that its makers build, alone in the log, though no package failed.
  if (package == nullptr && clues.packages.size() == 1 && is_released(clues.packages.front().name))
    at.package.released = true;
  // The project whose message it is, where no other prints it.
  if (package == nullptr && message != nullptr && lacks_code(finding.cause) && at.package.project.empty())
    at.package.software = input::software_of(message->who);
  // A package that no table of ours knows: pip brought it built, and nobody here has its sources.
  if (package == nullptr && !at.process.torch && !at.call.extension.empty()) at.package.released = true;
  // Only what PyTorch's extension builder builds reads it.
  if (clues.env.contains("TORCH_CUDA_ARCH_LIST")) {
    at.process.torch = true;
    if (at.package.arch_variable.empty()) at.package.arch_variable = "TORCH_CUDA_ARCH_LIST";
    at.package.arch_dots = at.package.arch_variable == "TORCH_CUDA_ARCH_LIST" || at.package.arch_dots;
  }
  // What compiles at run time makes PTX of its own compiler's version.
  if (clues.run_time_compiler && finding.cause == Cause::ptx_newer_than_driver)
    at.file.origin = Origin::memory;
  at.file.links_torch = at.process.torch || by_frame;
  if (finding.cause == Cause::stale_cache_artifact) set_cache(clues, at);
  // A build for one GPU of several would take the code of the others away.
  const bool of_list = judgment.list != nullptr && judgment.list->by_itself;
  for (const input::DeviceMention& each : clues.devices)
    if (at.gpu.cc && each.cc != *at.gpu.cc && (of_list || (each.by_name && judgment.device->by_name)))
      at.gpu.others.push_back(each.cc);
  if (message != nullptr) at.call.message = message->id;
  // "CUSTATEVEC_STATUS_ARCH_MISMATCH" names the library that refuses.
  if (const std::string library = message != nullptr ? group(*message, "library") : ""; !library.empty()) {
    at.package.software = "cu" + core::to_lower(library);
    if (data::find_installer(at.package.software, "pip") == nullptr)  // as NVIDIA spells it: cuSOLVER
      std::ranges::transform(library, at.package.software.begin() + 2, [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
    at.package.version.clear();
  }
  // The question is about cuDNN, not about its caller, where it is the message or its release is known.
  const PackageMention* cudnn = find_package(clues, "cuDNN");
  const bool released = cudnn != nullptr && !cudnn->version.empty();
  if (at.cause == Cause::cudnn_mismatch && (released || (message != nullptr && message->who == "cuDNN"))) {
    at.package.software = "cuDNN";
    if (released) at.package.version = cudnn->version;
  }
  if (finding.cause == Cause::nvrtc_arch_unsupported && judgment.hit != nullptr)
    set_compiler(clues, *judgment.hit, at);
  if (clues.solution) {
    at.package.solution_of = clues.solution->known_as();
    at.package.solution = clues.solution->version;
  }
  if (finding.cause == Cause::ptx_newer_than_driver) set_ptx(clues, at);
  if (finding.cause == Cause::driver_too_old) set_runtime(judgment.hit, at);
  // Its programs in /usr/src are those of the system's package.
  if (at.package.software == "TensorRT" && clues.has("apt") && !clues.has("python"))
    at.package.manager = "dpkg";
  at.process.windows = clues.of_windows();
  set_said(clues, message, at);
  const auto note = [&](Assumed what, bool said) {
    if (!said) at.process.unsaid.push_back(what);
  };
  note(Assumed::gpu, at.gpu.cc.has_value());
  note(Assumed::cuda, at.images.toolkit.known() || !at.package.variant.empty());
  note(Assumed::driver, at.driver.cuda.known() || !at.driver.module.empty());
  note(Assumed::system, clues.has("windows") || clues.has("posix"));
  note(Assumed::package_manager, clues.has("package-manager") || !at.package.variant.empty());
  note(Assumed::python, !at.process.python_version.empty());
  return std::make_shared<const Facts>(std::move(at));
}

}  // namespace kshim::diagnose
