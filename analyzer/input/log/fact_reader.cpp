// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/fact_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge.h"

namespace kshim::explain {
namespace {

using image::ComputeCapability;
using image::Version;

// What is kept of a log; the first of each kind decides, so what comes later is worth less and less.
constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostLists = 64;
constexpr std::size_t kMostImages = 256;
constexpr std::size_t kMostPackages = 200;
constexpr std::size_t kMostFrames = 200;
constexpr std::size_t kMostEnv = 32;

enum class Kind : std::uint8_t {
  cc,
  cc_found,
  cc2,
  sm,
  driver_module,
  driver_cuda,
  toolkit,
  toolkit_tag,
  cubin,
  ptx,
  file,
  arch_list,
  arch_words,
  ptx_words,
  arch100,
  traceback,
  frame,
  env,
  container,
  nccl,
  sanitizer,
  run_time_compiler,
  python,
  windows,
  posix,
  build_make,
  build_cmake,
  build_meson,
  build_bazel,
};
struct ClueRow {
  Kind kind;
  const char* pattern;
};
constexpr ClueRow kClues[] = {
#define KSHIM_CLUE(kind, pattern) {Kind::kind, pattern},
#include "analyzer/input/log/clues.def"
#undef KSHIM_CLUE
};

struct SoftwareRow {
  const char* package;
  const char* pattern;
};
constexpr SoftwareRow kSoftware[] = {
#define KSHIM_SOFTWARE(package, pattern) {package, pattern},
#include "analyzer/input/log/software.def"
#undef KSHIM_SOFTWARE
};

// The name, and perhaps its version and local version: torch==2.9.1+cu128, "PyTorch version: 2.9.1", "cuDNN
// >= 9.11".
std::string software_pattern(const SoftwareRow& row) {
  return fmt::format(
      R"((?:^|[^\w.])({})(?:(?: wheel| version| aarch64| \(?source\)?)?[ =:@>(v-]{{1,6}}(\d+\.\d+[\w.]*)(?:\+(\w+))?|[^\w]|$))",
      row.pattern);
}

const char* build_system_of(Kind kind) {
  return kind == Kind::build_make    ? "make"
         : kind == Kind::build_cmake ? "cmake"
         : kind == Kind::build_meson ? "meson"
                                     : "bazel";
}

}  // namespace

FactPatterns::FactPatterns(PatternSet& patterns) : first(patterns.size()) {
  for (const ClueRow& row : kClues) patterns.add(row.pattern);
  gpu_name = patterns.add(gpu_name_pattern());
  first_software = patterns.size();
  for (const SoftwareRow& row : kSoftware) patterns.add(software_pattern(row));
  end = patterns.size();
}

void FactReader::set_driver(Version version) {
  clues_.driver = version;
  clues_.driver_line = clues_.lines;
}

void FactReader::set_toolkit(Version version) { clues_.toolkit = version; }

// "7.5", "75", "sm_75", "7, 5", and 750 as ggml counts.
std::optional<ComputeCapability> capability_in(std::string text) {
  std::replace(text.begin(), text.end(), ',', '.');
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  if (const auto cc = known_cc(text)) return cc;
  if (text.size() > 2 && text.back() == '0') text.pop_back();
  return known_cc(text);
}

void FactReader::take_groups(const std::map<std::string, std::string>& groups) {
  const auto get = [&](const char* key) {
    const auto found = groups.find(key);
    return found == groups.end() ? std::string() : found->second;
  };
  if (const std::string cc = get("cc"); !cc.empty()) add_device(known_cc(cc));
  if (const std::string gpu = get("gpu"); !gpu.empty()) add_device(capability_in(gpu));
  if (const std::string built = get("built"); !built.empty())
    add_numbers(built, image::ImageKind::cubin, file_, false);
  if (const std::string sm = get("sm"); !sm.empty()) add_device(known_cc("sm_" + sm));
  if (const std::string arch = get("arch100"); arch.size() > 1)
    add_device(known_cc("sm_" + arch.substr(0, arch.size() - 1)));
  if (const std::string hex = get("hexsm"); hex.size() == 3) {  // 0x809 = 8.9
    unsigned number = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
    add_device(known_cc(std::to_string(number >> 8U) + '.' + std::to_string(number & 0xffU)));
  }
  if (const std::string has = get("hascuda"); !has.empty()) {
    int number = 0;
    std::from_chars(has.data(), has.data() + has.size(), number);
    set_driver(Version::from_cuda_number(number));
  }
}

void FactReader::add_device(std::optional<ComputeCapability> cc, std::string name_text) {
  if (!cc || clues_.devices.size() >= kMostDevices) return;
  for (DeviceClue& known : clues_.devices) {
    if (known.cc != *cc) continue;
    if (known.name.empty()) known.name = std::move(name_text);
    known.by_name = known.by_name && !name_text.empty();
    return;
  }
  const bool by_name = !name_text.empty();
  clues_.devices.push_back({*cc, std::move(name_text), clues_.lines, by_name});
}

// Every capability that the line has, but what it asks for: "3.0 or higher".
void FactReader::add_capabilities(int pattern, const std::string& text) {
  constexpr int kMostInALine = 4;
  std::size_t from = 0;
  for (int i = 0; i < kMostInALine; ++i) {
    const std::vector<std::string> groups = patterns_.next_groups(pattern, text, from);
    if (groups.size() < 2) return;
    const std::string_view line = text;
    if (!is_requirement(line.substr(0, from - groups[1].size()), line.substr(from))) {
      add_device(known_cc(groups[1]));
      return;
    }
  }
}

// "(8, 6)".
void FactReader::add_cc2(std::string fact) { add_device(capability_in(std::move(fact))); }

void FactReader::add_image(image::ImageKind kind, std::string_view arch_text, const std::string& owner,
                           bool by_itself) {
  const auto arch = image::parse_arch(arch_text);
  if (!arch || !known_cc(arch_text)) return;
  auto list = std::find_if(clues_.lists.begin(), clues_.lists.end(),
                           [&](const ImageList& known) { return known.owner == owner; });
  if (list == clues_.lists.end()) {
    if (clues_.lists.size() >= kMostLists) return;
    clues_.lists.push_back({owner, by_itself, {}, clues_.lines});
    list = clues_.lists.end() - 1;
  }
  const bool known =
      std::any_of(list->images.begin(), list->images.end(),
                  [&](const image::Candidate& image) { return image.kind == kind && image.arch == *arch; });
  if (!known && list->images.size() < kMostImages) list->images.push_back({kind, *arch, {}});
}

// "sm_50 sm_60 compute_90" in one line, as torch.cuda.get_arch_list() and its relatives print them.
void FactReader::add_words(const std::string& words, const std::string& owner) {
  static const RE2 kWord(R"(\b(sm_|compute_)(\d{2,3}[af]?)\b)");
  re2::StringPiece rest(words);
  std::string kind;
  std::string number;
  while (RE2::FindAndConsume(&rest, kWord, &kind, &number))
    add_image(kind == "sm_" ? image::ImageKind::cubin : image::ImageKind::ptx, number, owner, true);
}

void FactReader::add_numbers(const std::string& words, image::ImageKind kind, const std::string& owner,
                             bool hundredfold) {
  static const RE2 kNumber(R"((\d{2,4}[af]?))");
  re2::StringPiece rest(words);
  std::string number;
  while (RE2::FindAndConsume(&rest, kNumber, &number))
    add_image(kind, hundredfold && number.size() > 2 ? number.substr(0, number.size() - 1) : number, owner,
              true);
}

void FactReader::add_software(int pattern, const std::string& text) {
  const char* name = kSoftware[pattern - own_.first_software].package;
  constexpr int kMostInALine = 8;
  std::size_t from = 0;
  for (int i = 0; i < kMostInALine; ++i) {
    const std::vector<std::string> groups = patterns_.next_groups(pattern, text, from);
    if (groups.size() < 4) break;
    const bool from_source = groups[0].find("source") != std::string::npos;
    const std::string_view before = std::string_view(text).substr(0, from - groups[0].size());
    if (is_toolkit_of_build(before, groups[0], leading_version(groups[2]))) {
      note_package({name, groups[1], {}, {}, clues_.lines, from_source});
      if (!clues_.toolkit.known()) set_toolkit(leading_version(groups[2]));
      break;
    }
    // "pytorch 2.6" is PyTorch itself; conda's package of that name stands in conda's lists and commands.
    static const RE2 kConda(R"(\bconda\b|\bpy\d|::|=\d)");
    const bool own = !groups[3].empty() || groups[0].find("version") != std::string::npos ||
                     !RE2::PartialMatch(text, kConda);
    note_package({name, own && groups[1] == "pytorch" ? name : groups[1], groups[2], groups[3], clues_.lines,
                  from_source});
    if (!groups[2].empty()) break;
    --from;  // what stands behind the name may stand before the next
  }
}

void FactReader::note_package(const PackageClue& package) {
  if (std::find(software_.begin(), software_.end(), package.name) == software_.end())
    software_.push_back(package.name);
  const auto known = std::find_if(clues_.packages.begin(), clues_.packages.end(),
                                  [&](const PackageClue& other) { return other.name == package.name; });
  if (known == clues_.packages.end()) {
    if (clues_.packages.size() >= kMostPackages) return;
    clues_.packages.push_back(package);
  } else if (known->version.empty() && !package.version.empty()) {
    *known = package;
  }
  if (package.variant.starts_with("cu")) set_tag(package.variant.substr(2));
}

void FactReader::set_tag(const std::string& digits) {
  if (digits.size() != 3 || clues_.toolkit.known()) return;
  set_toolkit(leading_version(digits.substr(0, 2) + '.' + digits.substr(2)));
}

void FactReader::take(int index, const std::string& text) {
  if (index == own_.gpu_name) {
    // "needs 8.9 (e.g., RTX 4090)" names no GPU that is there.
    if (text.find("e.g") != std::string::npos || text.find("such as ") != std::string::npos) return;
    for (const GpuName& gpu : gpus_named_in(text)) add_device(gpu.cc, gpu.name);
    return;
  }
  if (index >= own_.first_software) {
    add_software(index, text);
    return;
  }
  const Kind kind = kClues[index - own_.first].kind;
  const std::string fact = patterns_.first_group(index, text);
  if (fact.empty()) return;
  switch (kind) {
    case Kind::cc:
      add_capabilities(index, text);
      break;
    case Kind::cc_found:
      add_device(known_cc(fact));
      break;
    case Kind::cc2:
      add_cc2(fact);
      break;
    case Kind::sm:
      add_device(known_cc("sm_" + fact));
      break;
    case Kind::driver_module:
      set_module(fact);
      break;
    case Kind::driver_cuda:
      set_driver(leading_version(fact));
      break;
    case Kind::toolkit:
      set_toolkit(leading_version(fact));
      break;
    case Kind::toolkit_tag:
      set_tag(fact);
      break;
    case Kind::cubin:
      add_image(image::ImageKind::cubin, fact, file_, false);
      break;
    case Kind::ptx:
      add_image(image::ImageKind::ptx, fact, file_, false);
      break;
    case Kind::file:
      file_ = fact;
      break;
    case Kind::arch_list:
      add_words(fact, file_);
      break;
    case Kind::arch_words:
      add_numbers(fact, image::ImageKind::cubin, file_, false);
      break;
    case Kind::ptx_words:
      add_numbers(fact, image::ImageKind::ptx, file_, false);
      break;
    case Kind::arch100:
      add_numbers(fact, image::ImageKind::cubin, "ggml", true);
      break;
    case Kind::traceback:
      traceback_.clear();
      break;
    case Kind::frame:
      add_frame(patterns_.groups(index, text));
      break;
    case Kind::env:
      add_env(fact);
      break;
    case Kind::container:
      clues_.container = true;
      break;
    case Kind::nccl:
      clues_.nccl = true;
      break;
    case Kind::sanitizer:
      clues_.sanitizer = true;
      break;
    case Kind::run_time_compiler:
      clues_.run_time_compiler = true;
      if (clues_.compiler.empty()) clues_.compiler = fact;
      break;
    case Kind::python:
      clues_.python = true;
      break;
    case Kind::windows:
      clues_.windows = true;
      break;
    case Kind::posix:
      clues_.posix = true;
      break;
    case Kind::build_make:
    case Kind::build_cmake:
    case Kind::build_meson:
    case Kind::build_bazel:
      if (clues_.build_system.empty()) clues_.build_system = build_system_of(kind);
      break;
  }
}

// Exact where the branch has a row; the CUDA version printed beside it says more and comes with another
// pattern.
void FactReader::set_module(const std::string& fact) {
  if (!clues_.kernel_module.empty()) return;
  clues_.kernel_module = fact;
  unsigned branch = 0;
  std::from_chars(fact.data(), fact.data() + fact.size(), branch);
  const analysis::ToolkitRow* row = analysis::toolkit_of_branch(branch);
  if (row == nullptr || clues_.driver.known()) return;
  set_driver(row->version);
}

void FactReader::add_frame(const std::vector<std::string>& groups) {
  if (groups.size() < 4) return;
  analysis::Place place;
  place.file = groups[1];
  std::from_chars(groups[2].data(), groups[2].data() + groups[2].size(), place.line);
  place.function = groups[3];
  place.python = true;
  // The outermost half at once: one by one, a log of many frames would shift them all for each.
  if (traceback_.size() >= kMostFrames)
    traceback_.erase(traceback_.begin(), traceback_.begin() + static_cast<std::ptrdiff_t>(kMostFrames / 2));
  traceback_.push_back(std::move(place));
  clues_.python = true;
}

void FactReader::add_env(const std::string& fact) {
  const std::size_t mark = fact.find('=');
  std::string key = fact.substr(0, mark);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  std::string value = fact.substr(mark + 1);
  value.erase(
      std::remove_if(value.begin(), value.end(), [](char c) { return c == '"' || c == '\'' || c == ' '; }),
      value.end());
  if (clues_.env.size() < kMostEnv) clues_.env.emplace(std::move(key), std::move(value));
}

}  // namespace kshim::explain
