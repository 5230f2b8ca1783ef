// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/fact_reader.h"

#include <cctype>
#include <cstring>
#include <stdexcept>

#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::input {
using data::Answer;
using data::ClueKind;
using data::GpuName;
using data::gpus_named_in;

namespace {

using image::ComputeCapability;
using image::Version;

// What is kept of a log; the first of each kind decides, so what comes later is worth less and less.
constexpr std::size_t kMaxDevices = 64;
constexpr std::size_t kMaxLists = 64;
constexpr std::size_t kMaxImages = 256;
constexpr std::size_t kMaxPackages = 200;
constexpr std::size_t kMaxFrames = 200;
constexpr std::size_t kMaxEnv = 32;
constexpr std::size_t kMaxOrdinals = 256;

// The name, and perhaps its version and local version: torch==2.9.1+cu128, "PyTorch version: 2.9.1", "cuDNN
// >= 9.11", and the columns of a list.
std::string software_pattern(const data::SoftwareRow& row) {
  return fmt::format(
      R"((?:^|[^\w.])({})(?:(?: wheel| version| is| aarch64| \(?source\)?)?(?::? \(`?\w+\.__version__`?\))?(?:[ =:@>(v*`|-]{{0,6}}| {{7,60}})(\d+\.\d+[\w.]*)(?:\+(?:g\w+\.(?:d\d+\.)?)?(\w+))?|[^\w]|$))",
      row.pattern);
}

struct AnswerPatterns {
  RE2 question;
  RE2 answer;
};
const std::vector<std::unique_ptr<AnswerPatterns>>& answer_patterns() {
  static const auto kPatterns = [] {
    std::vector<std::unique_ptr<AnswerPatterns>> out;
    for (const data::AnswerRow& row : data::answers())
      out.push_back(std::unique_ptr<AnswerPatterns>(
          new AnswerPatterns{RE2(std::string(row.question)), RE2(std::string(row.answer))}));
    return out;
  }();
  return kPatterns;
}

void add_new(const std::string& item, std::vector<std::string>& items) {
  if (items.size() < kMaxEnv && std::ranges::find(items, item) == items.end()) items.push_back(item);
}

// GPUs before Kepler have no row in the table, but logs still mention them.
bool is_known(ComputeCapability cc) {
  return data::find_gpu(cc) != nullptr || cc.major == 1 || (cc.major == 2 && cc.minor < 2);
}

RE2::Options without_case() {
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_encoding(RE2::Options::EncodingLatin1);
  return options;
}

}  // namespace

FactPatterns::FactPatterns(PatternSet& patterns) : first(patterns.size()) {
  patterns.add(data::gpu_name_pattern());
  first_clue = patterns.size();
  for (const auto& row : data::clues()) patterns.add(row.pattern);
  first_software = patterns.size();
  for (const auto& row : data::software()) patterns.add(software_pattern(row));
  end = patterns.size();
}

bool FactPatterns::is_late(int pattern) const {
  return pattern >= first_clue && pattern < first_software &&
         data::clues()[static_cast<std::size_t>(pattern - first_clue)].kind == ClueKind::solved;
}

void FactReader::set_driver(Version version) {
  constexpr Version kFirstWithKepler{4, 2};  // "driver 4.10" is meant to be 410
  if (version < kFirstWithKepler || (failed_ && clues_.driver.known())) return;
  clues_.driver = version;
  driver_by_module_ = false;
}

void FactReader::set_toolkit(Version version) {
  constexpr Version kOldest{3, 0};  // "Runtime Version: 1.15" is another one's
  if (!(version < kOldest) && !(failed_ && clues_.toolkit.known())) clues_.toolkit = version;
}

// Uses "CUDA 11.4" from free text only if no program printed a version, and not if it means the driver's.
void FactReader::say_toolkit(Version version, std::string_view text) {
  const data::ToolkitRow* row = data::toolkit_at_most(version);
  const auto says = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  const bool of_driver = (version == clues_.driver && says("CUDA Version")) ||
                         says(std::string(to_name(version).view()) + " native");
  if (clues_.toolkit.known() || of_driver || row == nullptr || row->version != version) return;
  set_toolkit(version);
}

// "7.5", "75", "sm_75", "7, 5", "7, minor: 5", and 750 as ggml counts.
std::optional<ComputeCapability> capability_in(std::string text) {
  static const RE2 kTwo(R"(^\s*(\d{1,2})\W+(?:(?i)minor\W+)?(\d)\b.*)");
  RE2::Replace(&text, kTwo, R"(\1.\2)");
  if (const auto cc = known_cc(text)) return cc;
  if (text.size() > 2 && text.back() == '0') text.pop_back();
  return known_cc(text);
}

void FactReader::take_groups(const std::map<std::string, std::string>& groups) {
  const auto get = [&](const char* key) { return group(groups, key); };
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

void FactReader::add_device(std::optional<ComputeCapability> cc, std::string name_text, DeviceRole role,
                            std::optional<int> ordinal) {
  if (!cc || clues_.devices.size() >= kMaxDevices) return;
  for (DeviceMention& known : clues_.devices) {
    if (known.cc != *cc) continue;
    if (known.name.empty()) known.name = std::move(name_text);
    known.by_name = known.by_name && !name_text.empty();
    known.role = std::max(known.role, role);
    if (!failed_) known.line = clues_.lines;
    if (ordinal && known.ordinals.size() < kMaxDevices) known.ordinals.push_back(*ordinal);
    return;
  }
  const bool by_name = !name_text.empty();
  clues_.devices.push_back({*cc, std::move(name_text), clues_.lines, by_name, role, {}});
  if (ordinal) clues_.devices.back().ordinals.push_back(*ordinal);
}

// The first match that states a fact rather than a requirement: "3.0 or higher", "requires CUDA 11.8".
std::string FactReader::fact_there(int pattern, const std::string& text) const {
  constexpr int kMaxInALine = 4;
  std::size_t from = 0;
  for (int i = 0; i < kMaxInALine; ++i) {
    const std::vector<std::string> groups = patterns_.next_groups(pattern, text, from);
    if (groups.size() < 2) break;
    const std::string_view line = text;
    const std::size_t begin = from - groups[0].size() + groups[0].find(groups[1]);
    if (!is_requirement(line.substr(0, begin), line.substr(begin + groups[1].size()))) return groups[1];
  }
  return {};
}

void FactReader::add_image(image::ImageKind kind, std::string_view arch_text, const std::string& owner,
                           bool by_itself) {
  const auto arch = image::parse_arch(arch_text);
  if (!arch || !known_cc(arch_text)) return;
  // What answers a question of an interpreter is read once more as any list.
  auto list = std::find_if(clues_.lists.begin(), clues_.lists.end(), [&](const ImageList& known) {
    return known.owner == owner || (owner.empty() && known.line == clues_.lines);
  });
  if (list == clues_.lists.end()) {
    if (clues_.lists.size() >= kMaxLists) return;
    clues_.lists.push_back({owner, by_itself, {}, clues_.lines});
    list = clues_.lists.end() - 1;
  }
  const bool known =
      std::any_of(list->images.begin(), list->images.end(),
                  [&](const image::Candidate& image) { return image.kind == kind && image.arch == *arch; });
  if (!known && list->images.size() < kMaxImages) list->images.push_back({kind, *arch, {}});
}

// "detectron2 arch flags  sm_75" applies to detectron2 only, not to the lines below it.
std::string FactReader::owner_of_list(const std::string& text) const {
  static const RE2 kOwner(R"(^\s*([A-Za-z][\w-]{1,40}) (?:CUDA )?arch(?:itecture)?s? flags\b)");
  static const RE2 kTorch(R"(\bcurrent PyTorch install)");
  std::string owner;
  if (RE2::PartialMatch(text, kTorch)) return "torch";
  return RE2::PartialMatch(text, kOwner, &owner) ? owner : file_;
}

// "sm_50 sm_60 compute_90" in one line, as torch.cuda.get_arch_list() and its relatives print them.
void FactReader::add_words(const std::string& words, const std::string& owner) {
  static const RE2 kWord(R"(\b(sm_|compute_)(\d{2,3}[af]?)\b)");
  static const RE2 kStage(R"(arch=compute_\w+ ?, ?code=)");  // PTX that is embedded stands behind "code="
  std::string embedded = words;
  RE2::GlobalReplace(&embedded, kStage, "code=");
  re2::StringPiece rest(embedded);
  std::string kind;
  std::string number;
  while (RE2::FindAndConsume(&rest, kWord, &kind, &number))
    add_image(kind == "sm_" ? image::ImageKind::cubin : image::ImageKind::ptx, number, owner, true);
}

// -DCUDA_ARCHITECTURES="8.0 8.6+PTX": the architectures that were built, and this project's option for them.
void FactReader::add_option(const std::vector<std::string>& groups) {
  if (groups.size() < 3) return;
  add_numbers(groups[2], image::ImageKind::cubin, file_, false);
  clues_.arch_variable = groups[1];
  clues_.arch_dots = groups[2].find('.') != std::string::npos;
}

void FactReader::add_numbers(const std::string& words, image::ImageKind kind, const std::string& owner,
                             bool hundredfold) {
  static const RE2 kNumber(R"((\d{1,2}\.\d[af]?|\d{2,4}[af]?))");
  re2::StringPiece rest(words);
  std::string number;
  while (RE2::FindAndConsume(&rest, kNumber, &number)) {
    std::erase(number, '.');
    const bool by_hundred = hundredfold || !known_cc("sm_" + number);  // 610 as ggml counts
    add_image(kind, by_hundred && number.size() > 2 ? number.substr(0, number.size() - 1) : number, owner,
              true);
  }
}

// A row of `conda list` that is not pip's, and one of an environment.yml: "- cupy=12.1".
bool is_of_conda(const std::string& text) {
  static const RE2 kRow(
      R"(^\W{0,2}[\w.-]+ {2,}\d[\w.]* {2,}(?:[\w.]*_\d+|\w*h[0-9a-f]{6,}\w*)(?: {2,}[\w./-]+)?\s*$)");
  static const RE2 kSpec(R"(^\s*- (?:[\w-]+::)?[\w.-]+=\d[^=\s]*(?:=\S+)?\s*$)");
  return (RE2::PartialMatch(text, kRow) && text.find("pypi") == std::string::npos) ||
         RE2::PartialMatch(text, kSpec);
}

// "It worked with 2.4", "trained with 1.10": not the release that is there, which the line may name behind.
bool is_of_the_past(std::string_view before) {
  static const RE2 kPast(
      R"((?i)\b(?:(?:works?|worked|working|ran|runs?|fine|ok|trained)\b[^.;]{0,30}\b(?:with|on|in|under|until|using|before)|(?:upgrad|updat|mov|switch|migrat|chang)\w+ (?:\w+ ){0,2}from)(?: (?:the|an?|version|release))* $)");
  constexpr std::size_t kLongest = 200;
  return before.size() <= kLongest && RE2::PartialMatch({before.data(), before.size()}, kPast);
}

// "yours is 2.8.0+cu128", "upgraded to 2.9".
bool find_present(const std::string& behind, std::string& version, std::string& variant) {
  static const RE2 kPresent(
      R"((?i)\b(?:yours (?:is|are)|(?:upgrad|updat|mov|switch|migrat|chang)\w+ (?:\w+ ){0,3}to|since|now|but (?:with|in|on)|not with|fails? (?:with|on|in)) (?:(?:is|on|with|the|version|release|PyTorch|torch) )*v?(\d+\.\d+[\w.]*?)(?:(?: ?\(|\+)(cu\d+)\)?)?(?:\.?$|\.?[\s,;:)]))");
  return RE2::PartialMatch(behind, kPresent, &version, &variant);
}

void FactReader::add_software(int pattern, const std::string& text) {
  const std::string name(data::software()[static_cast<std::size_t>(pattern - own_.first_software)].package);
  constexpr int kMaxInALine = 8;
  note_works(pattern, name, text);
  std::size_t from = 0;
  for (int i = 0; i < kMaxInALine; ++i) {
    const std::vector<std::string> groups = patterns_.next_groups(pattern, text, from);
    if (groups.size() < 4) break;
    static const RE2 kInstalled(R"((?i)\binstalled from\b.*: *source\b)");
    const bool from_source =
        groups[0].find("source") != std::string::npos || RE2::PartialMatch(text, kInstalled);
    const std::string_view before = std::string_view(text).substr(0, from - groups[0].size());
    // "external/org_tensorflow/tensorflow/compiler/xla": a source that another package has built in.
    static const RE2 kBuiltIn(R"(\bexternal/\S*$)");
    if (RE2::PartialMatch(before, kBuiltIn)) {
      --from;
      continue;
    }
    if (groups[0].starts_with('/') && before.ends_with("CUDA")) break;  // "CUDA/cuDNN version: 10.2"
    // "torch.cuda.is_available() returns True": what works is not what fails.
    static const RE2 kPasses(R"(^\.cuda\.is_available\(\)[^,;.]*\bTrue\b)");
    if (name == "torch" && RE2::PartialMatch(std::string_view(text).substr(from - 1), kPasses)) continue;
    // "rotary-embedding-torch 0.8.9" is a package of another name.
    const bool in_name =
        groups[0].starts_with('-') && !before.empty() &&
        std::isalnum(static_cast<unsigned char>(before.back())) != 0 &&
        std::ranges::none_of(groups[1], [](unsigned char c) { return std::isupper(c) != 0; });
    if (in_name) continue;
    const bool tag = groups[0].find(':') != std::string::npos && before.ends_with("nvidia");
    if (groups[0].starts_with('/') && tag) break;  // "nvcr.io/nvidia/pytorch:21.05"
    if (is_toolkit_of_build(before, groups[0], leading_version(groups[2]))) {
      note_package({name, groups[1], {}, {}, clues_.lines, from_source});
      if (!clues_.toolkit.known()) set_toolkit(leading_version(groups[2]));
      break;
    }
    // "pytorch 2.6" is PyTorch itself; conda's package of that name stands in conda's lists and commands.
    static const RE2 kConda(R"(\bconda\b|\bpy\d[\d.]*_|::|[^=]=\d)");
    const bool own = !groups[3].empty() || groups[0].find("version") != std::string::npos ||
                     !RE2::PartialMatch(text, kConda);
    PackageMention found{name,
                         own && groups[1] == "pytorch" ? name : groups[1],
                         groups[2].substr(0, groups[2].find_last_not_of('.') + 1),
                         groups[3],
                         clues_.lines,
                         from_source};
    // "You need torch>=1.10": what is asked for.
    static const RE2 kRange(R"([<>~!]=? ?v?\d)");
    if (RE2::PartialMatch(groups[0], kRange)) found.version.clear();
    if (!found.version.empty()) {
      static const RE2 kAsks(R"((?i)\b(?:requires?|needs?|depends)\b)");
      found.printed = (!found.variant.empty() || groups[0].find("ersion") != std::string::npos) &&
                      !RE2::PartialMatch(before, kAsks);
      found.of_conda = is_of_conda(text);
      const std::size_t at = before.size() + groups[0].find(groups[1]);
      const std::string behind = text.substr(from);
      static const RE2 kVariant(R"(^ ?\(?(cu\d{2,3})\b)");
      if (found.variant.empty()) RE2::PartialMatch(behind, kVariant, &found.variant);
      static const RE2 kWasFine(
          R"((?i)^,? (?:it |all |everything )?(?:was |were |is )?(?:fine|ok|work(?:s|ed))\b)");
      found.past =
          is_of_the_past(std::string_view(text).substr(0, at)) || RE2::PartialMatch(behind, kWasFine);
      if (found.past && find_present(behind, found.version, found.variant)) {
        found.past = false;
        clues_.works.erase(name);
      }
    }
    note_package(found);
    if (!groups[2].empty() && !found.past) break;
    --from;  // what stands behind the name may stand before the next
  }
}

void FactReader::note_package(const PackageMention& package) {
  line_packages_.push_back(package);
  if (std::find(software_.begin(), software_.end(), package.name) == software_.end())
    software_.push_back(package.name);
  const auto known = std::find_if(clues_.packages.begin(), clues_.packages.end(),
                                  [&](const PackageMention& other) { return other.name == package.name; });
  if (known == clues_.packages.end()) {
    if (clues_.packages.size() >= kMaxPackages) return;
    clues_.packages.push_back(package);
  } else if ((known->version.empty() || known->past || (package.printed && !failed_)) &&
             !package.version.empty()) {
    const bool from_source = known->from_source;
    *known = package;
    known->from_source = known->from_source || from_source;
  } else {
    known->from_source = known->from_source || package.from_source;
    if (is_vendored(known->name) && known->written.starts_with(known->name)) known->written = package.written;
  }
  if (package.variant.starts_with("cu")) set_tag(package.variant.substr(2));
}

std::uint64_t bytes_of_size(const std::string& number, const std::string& unit) {
  double out = std::strtod(number.c_str(), nullptr);
  const char* const letter = unit.empty() ? nullptr : std::strchr("KMG", std::toupper(unit.front()));
  for (const char* at = "KMG"; letter != nullptr; ++at) {
    out *= 1024;
    if (*at == *letter) break;
  }
  return static_cast<std::uint64_t>(out);
}

// "9.04 GiB" and what stands before or behind it.
void FactReader::set_memory(const std::string& text) {
  static const std::string kSize = R"((\d+(?:\.\d+)?) ?([KMG]?)i?B(?:ytes)?)";
  static const auto pattern = [](const char* before, const char* behind) {
    return std::make_unique<RE2>("(?i)" + (before + kSize) + behind);
  };
  static const auto kAsked = pattern(R"(tried to allocate )", "");
  static const auto kTotal = pattern(R"(total capaci?ty of )", "");
  static const auto kTotalOld = pattern("", R"( total capaci?ty)");
  static const auto kFree = pattern("which ", R"( is free)");
  static const auto kFreeOld = pattern("[;,] ", R"( free)");
  static const auto kOwn = pattern(R"(this process has )", R"( memory in use)");
  static const auto kOther = pattern(R"(Process \d+ has )", R"( memory in use)");
  static const auto kOwnOld = pattern("", R"( reserved in total by PyTorch)");
  static const auto kUsedOld = pattern("", R"( already allocated)");
  static const auto kAllocated = pattern("", R"( is allocated by PyTorch)");
  static const auto kReserved = pattern("", R"( is reserved by PyTorch but unallocated)");
  const auto read = [&](const std::unique_ptr<RE2>& wanted) {
    std::string number;
    std::string unit;
    return RE2::PartialMatch(text, *wanted, &number, &unit) ? bytes_of_size(number, unit) : std::uint64_t{0};
  };
  const auto any = [&](const std::unique_ptr<RE2>& now, const std::unique_ptr<RE2>& old) {
    const std::uint64_t size = read(now);
    return size != 0 ? size : read(old);
  };
  GpuMemory memory;
  memory.asked = read(kAsked);
  memory.total = any(kTotal, kTotalOld);
  memory.free = any(kFree, kFreeOld);
  memory.own = any(kOwn, kOwnOld);
  if (memory.own == 0) memory.own = read(kAllocated);
  memory.reserved = read(kReserved);
  if (const std::uint64_t used = read(kUsedOld); used != 0)
    memory.reserved = memory.own - std::min(memory.own, used);
  std::string number;
  std::string unit;
  for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, *kOther, &number, &unit);)
    memory.others += bytes_of_size(number, unit);
  // In a container a process does not know its own number: what is listed as another's holds its memory.
  if (memory.others != 0 && memory.others + memory.own > memory.total)
    memory.own = std::exchange(memory.others, 0);
  // "free 14.56 / 15.92 GiB", and the table of nvidia-smi: "512MiB / 16376MiB".
  static const RE2 kOfTotal(
      R"((?i)(\bfree:? |\| +)(\d+(?:\.\d+)?) ?([KMG]?)i?B? ?/ ?(\d+(?:\.\d+)?) ?([KMG])i?B\b)");
  std::string word;
  std::string first;
  std::string first_unit;
  std::string all;
  std::string all_unit;
  if (!memory.known() && RE2::PartialMatch(text, kOfTotal, &word, &first, &first_unit, &all, &all_unit)) {
    memory.total = bytes_of_size(all, all_unit);
    const std::uint64_t part = bytes_of_size(first, first_unit.empty() ? all_unit : first_unit);
    (word.starts_with('|') ? memory.others : memory.free) = part;
  }
  // The driver's own allocator has a line for each.
  static const auto kLimit = pattern(R"(^\s*device limit *: )", "");
  static const auto kRequested = pattern(R"(^\s*requested *: )", "");
  static const auto kHeld = pattern(R"(^\s*currently allocated *: )", "");
  if (const std::uint64_t held = read(kHeld); held != 0) clues_.memory.own = held;
  if (const std::uint64_t asked = read(kRequested); asked != 0) clues_.memory.asked = asked;
  if (const std::uint64_t total = read(kLimit); total != 0) clues_.memory.total = total;
  const std::uint64_t accounted = memory.free + memory.own;
  if (memory.others == 0 && memory.own != 0) memory.others = memory.total - std::min(memory.total, accounted);
  if (memory.known() && !clues_.memory.known()) clues_.memory = memory;
}

void FactReader::set_tag(const std::string& digits) {
  if (digits.size() != 3 || clues_.toolkit.known()) return;
  set_toolkit(leading_version(digits.substr(0, 2) + '.' + digits.substr(2)));
}

// What a sentence says of its GPUs.
DeviceRole role_in(const std::string& clause) {
  static const RE2 kFails(
      R"((?i)\b(?:not|cannot|never|fail(?:s|ed|ing)?|crash\w*|errors?|broken|problems? (?:on|with))\b|n't\b)");
  static const RE2 kWorks(
      R"((?i)\b(?:work(?:s|ed)|work (?:perfectly|fine|well|great)|(?:runs?|ran|running|trains?) (?:\w+ )?(?:fine|ok|well|without)|(?:is|are) (?:fine|ok)|without (?:any )?(?:problems?|issues?|errors?)|(?:fine|ok|no (?:problems?|issues?|errors?)) (?:on|with))\b)");
  return RE2::PartialMatch(clause, kFails)   ? DeviceRole::fails
         : RE2::PartialMatch(clause, kWorks) ? DeviceRole::works
                                             : DeviceRole::none;
}

/// Calls visit(clause, role) for the parts of a line that tell of this machine's GPUs.
template <class Visit>
void each_clause(std::string text, Visit&& visit) {
  // "needs 8.9 (e.g., RTX 4090)" does not name a GPU of this machine.
  if (text.find("e.g") != std::string::npos || text.find("such as ") != std::string::npos) return;
  // "contains only RTX 4090 kernels" is what a file has.
  static const RE2 kHas(
      R"(\b(?:only|for|has|have|contains?) (?:the |NVIDIA |GeForce )*(?:[RG]TX )?\w{2,6}(?: Ti)? (?:kernels?|cubins?|code|binar\w+)\b)");
  // "Requires Hopper (H100, H200)", "only supports A100": what is asked for.
  static const RE2 kAsked(
      R"((?i)\b(?:requires?|needs? an?|only (?:supports?|supported (?:on|by|with)|works? (?:on|with)|runs? on|available (?:on|for))|supported GPUs|designed for|minimum|recommended|tested (?:on|with)|or (?:higher|newer|above|later|better))(?:[^\w.;:]|:\W)(?:[^.;:]|\.\w)*?(?:\b(?:but|your?|my|got|found|have|has)\b|[.;:]\W|$))");
  static const RE2 kClause(R"((?i)(.*?(?:[,;)]|\w\.) |.*? (?:but|while|whereas|however|although) |.+))");
  RE2::GlobalReplace(&text, kHas, "");
  RE2::GlobalReplace(&text, kAsked, "");
  re2::StringPiece rest(text);
  constexpr int kMaxInALine = 64;
  std::string clause;
  for (int i = 0; i < kMaxInALine && !rest.empty() && RE2::Consume(&rest, kClause, &clause); ++i)
    visit(clause, role_in(clause));
}

// "GPU 1: NVIDIA L4", "cuda:1 NVIDIA L4", and the table of nvidia-smi.
std::optional<int> ordinal_in(const std::string& text) {
  static const RE2 kOrdinal(
      R"((?i)(?:\b(?:GPU|device|cuda|ordinal|cudaSetDevice|set_device)[ =:#\[(]{0,2}(\d{1,2})\b|^\|\s{1,4}(\d{1,2})\s{1,3}(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN)\b))");
  std::string number;
  std::string of_table;
  if (!RE2::PartialMatch(text, kOrdinal, &number, &of_table)) return std::nullopt;
  const std::string& digits = number.empty() ? of_table : number;
  int out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

void FactReader::add_named_devices(const std::string& text) {
  const auto ordinal = ordinal_in(text);
  std::vector<GpuName> before;
  each_clause(text, [&](const std::string& clause, DeviceRole role) {
    // "On an RTX 3050 Ti:", and then the failure.
    if (role == DeviceRole::none && clause.ends_with(':')) role = DeviceRole::fails;
    // "a Quadro RTX 8000, and it works well"
    static const RE2 kIt(
        R"((?i)^\W*(?:(?:and|which|where|there) )+(?:it |that one |everything )?(?:works?|worked|runs?|ran)\b)");
    const std::vector<GpuName> named = gpus_named_in(clause);
    for (const GpuName& gpu : named)
      add_device(gpu.cc, gpu.name, role, named.size() == 1 ? ordinal : std::nullopt);
    if (named.empty() && role == DeviceRole::works && RE2::PartialMatch(clause, kIt))
      for (const GpuName& gpu : before) add_device(gpu.cc, gpu.name, role);
    before = named;
  });
}

void FactReader::take(int index, const std::string& text) {
  if (index == own_.first) {
    add_named_devices(text);
    return;
  }
  if (index >= own_.first_software) {
    add_software(index, text);
    return;
  }
  const data::ClueRow& row = data::clues()[static_cast<std::size_t>(index - own_.first_clue)];
  const ClueKind kind = row.kind;
  constexpr std::array kMayAsk = {ClueKind::cc, ClueKind::cc2, ClueKind::sm, ClueKind::driver_module,
                                  ClueKind::toolkit_said};
  const std::string fact =
      core::contains(kMayAsk, kind) ? fact_there(index, text) : patterns_.first_group(index, text);
  if (!fact.empty()) take_clue(row, index, fact, text);
}

void FactReader::take_clue(const data::ClueRow& row, int index, const std::string& fact,
                           const std::string& text) {
  constexpr auto kCubin = image::ImageKind::cubin;
  note_build(row.kind, text);
  switch (row.kind) {
    case ClueKind::cc:
    case ClueKind::cc_found:
      return add_device(known_cc(fact));
    case ClueKind::cc2:
      return add_device(capability_in(fact));
    case ClueKind::cc_major:
      major_ = fact;
      return;
    case ClueKind::cc_minor:
      if (!major_.empty()) add_device(known_cc(std::exchange(major_, {}) + '.' + fact));
      return;
    case ClueKind::sm:
      return add_device(known_cc("sm_" + fact));
    case ClueKind::driver_module:
      return set_module(fact);
    case ClueKind::driver_cuda:
      return set_driver(leading_version(fact));
    case ClueKind::toolkit:
      return set_toolkit(leading_version(fact));
    case ClueKind::toolkit_said:
      return say_toolkit(leading_version(fact), text);
    case ClueKind::toolkit_tag:
      return set_tag(fact);
    case ClueKind::cubin:
      return add_image(kCubin, fact, file_, false);
    case ClueKind::ptx:
      return add_image(image::ImageKind::ptx, fact, file_, false);
    case ClueKind::file:
      file_ = fact;
      return;
    case ClueKind::arch_list:
      return add_words(fact, owner_of_list(text));
    case ClueKind::arch_option:
      return add_option(patterns_.groups(index, text));
    case ClueKind::arch_variable:
    case ClueKind::arch_flags:
      if (!clues_.arch_variable.empty()) return;
      clues_.arch_variable = fact;
      clues_.arch_flags = row.kind == ClueKind::arch_flags;
      return;
    case ClueKind::compiler_package:
      clues_.compiler_package = leading_version(fact);
      return;
    case ClueKind::arch_words:
      return add_numbers(fact, kCubin, file_, false);
    case ClueKind::ptx_words:
      return add_numbers(fact, image::ImageKind::ptx, file_, false);
    case ClueKind::arch100:
      return add_numbers(fact, kCubin, "ggml", true);
    case ClueKind::traceback:
      return traceback_.clear();
    case ClueKind::frame:
      before_frame_ = text.substr(0, std::min(text.find("File \""), text.size()));
      frame_line_ = clues_.lines;
      return add_frame(patterns_.groups(index, text));
    case ClueKind::env:
      return add_env(fact);
    case ClueKind::run_time_compiler:
      clues_.run_time_compiler = true;
      if (clues_.compiler.empty()) clues_.compiler = fact;
      return;
    case ClueKind::build_system:
      if (clues_.build_system.empty()) clues_.build_system = row.shows;
      return;
    case ClueKind::container_image:
      if (clues_.container_image.empty()) clues_.container_image = fact;
      clues_.shows.emplace("container");
      return;
    case ClueKind::works:
      clues_.works.emplace(row.shows);
      return;
    case ClueKind::tried:
      return note_tried(row, text);
    case ClueKind::solved:
      return note_solution(text);
    case ClueKind::minimum:
      if (const auto cc = known_cc(fact); cc && clues_.minimums.size() < kMaxDevices)
        clues_.minimums.push_back({*cc, {}});
      return;
    case ClueKind::ptx_isa:
      clues_.ptx = leading_version(fact);
      return;
    case ClueKind::speaker:
      return set_speaker(program_of_word(fact));
    case ClueKind::command:
      return note_program(row.kind, program_of_word(fact));
    case ClueKind::folder:
      return note_program(row.kind, project_of_path(fact));
    case ClueKind::python_release: {
      std::string release = fact;  // "3.10", or "310" of cp310
      if (release.size() > 1 && release[1] != '.') release.insert(1, ".");
      if (clues_.python_release.empty()) clues_.python_release = release;
      return;
    }
    case ClueKind::own_python: {  // a folder of Python itself, or a virtual environment
      const bool venv = core::to_lower(fact).ends_with("venv");
      if (clues_.own_python.empty())
        clues_.own_python =
            fmt::format(R"(.\{}\python.exe{})", venv ? fact + R"(\Scripts)" : fact, venv ? "" : " -s");
      return;
    }
    case ClueKind::memory:
      return set_memory(text);
    case ClueKind::shows:
      clues_.shows.emplace(row.shows);
      return;
    case ClueKind::said:
      clues_.said.emplace(row.shows, fact);
      return;
    case ClueKind::library_there: {
      const std::vector<std::string> groups = patterns_.groups(index, text);
      if (groups.size() > 2 && clues_.libraries.size() < kMaxEnv) clues_.libraries.emplace(fact, groups[2]);
      return;
    }
    case ClueKind::installed:
      return note_installed(index, text);
    case ClueKind::listing:
      listed_ = fact;
      return;
    case ClueKind::there:
      return note_there(index, text);
    case ClueKind::cuda_wheel:
      return add_new(fact, clues_.cuda_wheels);
    case ClueKind::driver_release:
      return add_new(fact, clues_.driver_releases);
    case ClueKind::gpu_number:
      return add_number(index, text);
    case ClueKind::ordinal: {
      const auto ordinal = ordinal_in(text);
      if (ordinal && clues_.ordinals.size() < kMaxOrdinals && gpus_named_in(text).empty())
        clues_.ordinals.push_back({clues_.lines, *ordinal});
      return;
    }
  }
}

// "vLLM works fine on this card, llama.cpp too": what a sentence is about, and not what it works with, before
// what or where else.
void FactReader::note_works(int pattern, const std::string& name, const std::string& text) {
  static const RE2 kMay(R"((?i)\b(?:works?|worked|runs?|ran|fine|trains?|ok)\b)");
  static const RE2 kToo(R"((?i)\b(?:too|also|as well)\b)");
  static const RE2 kElsewhere(
      R"((?i)\b(?:works?|worked|runs?|ran|fine|ok)\b.*(?:\d|\b(?:cpu|other|another|older?|previous|before|until|after|when|if|once|with|in)\b))");
  constexpr std::size_t kLongestSentence = 400;
  constexpr std::string_view kBeginnings[] = {"work", "run", "ran", "fine", "train", "ok"};
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (text.size() > kLongestSentence || std::ranges::none_of(kBeginnings, has) ||
      !RE2::PartialMatch(text, kMay))
    return;
  DeviceRole before = DeviceRole::none;
  bool works = false;
  each_clause(text, [&](const std::string& clause, DeviceRole role) {
    if (role == DeviceRole::none && RE2::PartialMatch(clause, kToo)) role = before;
    before = role;
    const std::vector<std::string> groups = patterns_.groups(pattern, clause);
    if (groups.empty() || role != DeviceRole::works) return;
    const std::string behind = clause.substr(clause.find(groups[0]) + groups[0].size());
    works = !RE2::PartialMatch(behind, kElsewhere) &&
            (RE2::PartialMatch(behind, kMay) || RE2::PartialMatch(clause, kToo));
  });
  if (works) clues_.works.insert(name);
}

// pip says which release is there: of what the table software knows as well.
void FactReader::note_installed(int pattern, const std::string& text) {
  std::size_t from = 0;
  for (auto groups = patterns_.next_groups(pattern, text, from);
       groups.size() > 3 && clues_.installed.size() < kMaxPackages;
       groups = patterns_.next_groups(pattern, text, from)) {
    clues_.installed.emplace(groups[1], groups[2]);
    if (const std::string name = software_of(groups[1]); !name.empty())
      note_package({name, groups[1], groups[2], groups[3], clues_.lines});
  }
}

// "ls /usr/local/cuda/lib64" and what stands below, "whereis nvcc": files that are there. What is said to be
// missing is not.
void FactReader::note_there(int pattern, const std::string& text) {
  static const RE2 kMissing(
      R"((?i)\b(?:cannot|can't|could ?n[o']t|not|no such|unable|fail\w*|missing|error|looking|search\w*)\b)");
  const bool missing = RE2::PartialMatch(text, kMissing);
  std::size_t from = 0;
  for (auto groups = patterns_.next_groups(pattern, text, from); groups.size() > 1;
       groups = patterns_.next_groups(pattern, text, from)) {
    const std::size_t name = groups[1].rfind('/') + 1;
    const std::string file = groups[1].substr(name);
    const std::string folder = name == 0 ? listed_ : groups[1].substr(0, name - 1);
    if (missing)
      std::erase_if(clues_.there,
                    [&](const auto& each) { return each.first == file && each.second == folder; });
    else if (!folder.empty() && clues_.there.size() < kMaxPackages)
      clues_.there.emplace(file, folder);
  }
}

// A step that changed nothing, by its own sentence or by the heading above it.
void FactReader::note_tried(const data::ClueRow& row, const std::string& text) {
  static const RE2 kUseless(
      R"((?i)\b(?:same (?:error|issue|problem|result|message|thing|failure)|no (?:luck|change|difference|effect|success)|(?:did|does|do)(?: not|n'?t) (?:help|work|fix|change|solve|make)|still (?:the same|fail|get|happen|crash|no\b|occur|see|there|not)|without success|to no avail|nothing (?:changed|helped|work)|already (?:tried|re-?boot|re-?start|re-?install|updat|upgrad|clear|delet)|(?:error|problem|message|issue) (?:is still|persist|stay|remain)|makes? no difference|not solve|not help)|\b(?:the )?same$)");
  if (lists_tries_ || RE2::PartialMatch(text, kUseless))
    clues_.shows.insert(fmt::format("tried-{}", row.shows));
}

// "Fixed by upgrading bitsandbytes to 0.45.3."
void FactReader::note_solution(const std::string& text) {
  static const RE2 kRelease(
      R"((?i)\b(?:to|with|version|==|release) ?v?(\d+\.\d+[\w.]*?)(?:\+(cu\d+))?\.?(?:\s|$|[,;)]))");
  std::string release;
  std::string variant;
  if (clues_.solution || line_packages_.empty()) return;
  PackageMention found = line_packages_.back();
  for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kRelease, &release, &variant);) {
    found.version = release;
    found.variant = variant;
  }
  if (!found.version.empty()) clues_.solution = std::move(found);
}

// "$ cmake -B build -DCMAKE_CUDA_ARCHITECTURES=86": what was typed, and no line that a build prints of
// itself.
void FactReader::note_build(ClueKind kind, const std::string& text) {
  constexpr std::array kOfBuild = {ClueKind::arch_list, ClueKind::arch_words, ClueKind::arch_option,
                                   ClueKind::arch_flags, ClueKind::env};
  static const RE2 kTyped(
      R"(^\s*((?:[^$#>`]{0,120}[$#>] +|[^`]{0,120}`\$? ?|RUN +)?)((?:[A-Z_]\w*=(?:"[^"]*"|'[^']*'|\S*) +)*([\w./-]*nvcc|cmake|make|pip3?|python3?|cargo|\./configure) [^`]*))");
  constexpr std::size_t kLongest = 400;
  std::string prompt;
  std::string command;
  std::string program;
  if (!core::contains(kOfBuild, kind) || text.size() > kLongest) return;
  RE2::PartialMatch(text, kTyped, &prompt, &command, &program);
  const bool printed = prompt.empty() && program.ends_with("nvcc");
  const bool whole = text.ends_with(command) || prompt.find('`') != std::string::npos;
  if (!command.empty() && !printed && whole) clues_.build_command = command;
}

void FactReader::note_program(ClueKind by, std::string name) {
  constexpr std::size_t kMaxPrograms = 64;
  auto& known = clues_.programs;
  if (name.empty()) return;
  if (known.size() >= kMaxPrograms) known.erase(known.begin());
  known.push_back({by, std::move(name), clues_.lines});
}

// "a 3060 and a 4070", and "RTX 208..." as nvidia-smi cuts names.
void FactReader::add_number(int pattern, const std::string& text) {
  each_clause(text, [&](const std::string& clause, DeviceRole role) {
    std::size_t from = 0;
    for (auto groups = patterns_.next_groups(pattern, clause, from); groups.size() > 1;
         groups = patterns_.next_groups(pattern, clause, from)) {
      const std::string number = groups[0].ends_with("...") ? groups[1] + '0' : groups[1];
      // "RTX 50 series": any of them.
      if (number.size() == 2)
        for (const GpuName& gpu : gpus_named_in("RTX " + number + "80")) add_device(gpu.cc, {}, role);
      for (const char* series : {"RTX ", "GTX ", "Jetson ", "Quadro "})
        for (const GpuName& gpu : gpus_named_in(series + number)) add_device(gpu.cc, gpu.name, role);
    }
  });
}

// Exact where the branch has a row; the CUDA version printed beside it says more and comes with another
// pattern.
void FactReader::set_module(std::string fact) {
  // The first of a line, of the last line before a failure.
  if (!clues_.kernel_module.empty() && (failed_ || module_line_ == clues_.lines)) return;
  static const RE2 kOfWindows(R"(\d{2}\.\d{1,2}\.\d*(\d)\.(\d{2})(\d{2}))");  // 31.0.15.3623 is 536.23
  std::string hundreds;
  std::string rest;
  std::string minor;
  if (RE2::FullMatch(fact, kOfWindows, &hundreds, &rest, &minor)) {
    fact = hundreds + rest + '.' + minor;
    clues_.shows.emplace("windows");
  }
  unsigned branch = 0;
  std::from_chars(fact.data(), fact.data() + fact.size(), branch);
  const data::ToolkitRow* row = data::toolkit_of_branch(branch);
  if (row == nullptr && fact.find('.') == std::string::npos) return;
  clues_.kernel_module = std::move(fact);
  module_line_ = clues_.lines;
  if (row == nullptr || (clues_.driver.known() && !driver_by_module_)) return;
  set_driver(row->version);
  driver_by_module_ = true;
}

bool FactReader::is_source(const std::string& text) const {
  static const RE2 kOfIPython(R"(^-+> ?\d+ )");
  const bool below =
      frame_line_ != 0 && frame_line_ + 1 == clues_.lines && text.starts_with(before_frame_ + "  ");
  return below || RE2::PartialMatch(text, kOfIPython);
}

void FactReader::add_frame(const std::vector<std::string>& groups) {
  if (groups.size() < 4) return;
  native_ = false;
  core::Place place;
  place.file = groups[1];
  std::from_chars(groups[2].data(), groups[2].data() + groups[2].size(), place.line);
  place.function = groups[3];
  place.python = true;
  // The outermost half at once: one by one, a log of many frames would shift them all for each.
  if (traceback_.size() >= kMaxFrames)
    traceback_.erase(traceback_.begin(), traceback_.begin() + static_cast<std::ptrdiff_t>(kMaxFrames / 2));
  traceback_.push_back(std::move(place));
  clues_.shows.emplace("python");
}

void FactReader::add_env(const std::string& fact) {
  const std::size_t mark = fact.find('=');
  std::string key = fact.substr(0, mark);
  while (!key.empty() && key.back() == ' ') key.pop_back();
  std::string value = fact.substr(mark + 1);
  std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
  while (value.ends_with(',') || value.ends_with('.')) value.pop_back();  // of the sentence
  value.erase(0, std::min(value.find_first_not_of(' '), value.size()));
  std::replace(value.begin(), value.end(), ' ', ';');  // "6.0 6.1" and "6.0;6.1" are one list
  if (clues_.env.size() < kMaxEnv) clues_.env.emplace(std::move(key), std::move(value));
}

Version leading_version(std::string_view text) {
  // 2.1.0 and 13.0.96 are versions too: the first two numbers count. 12040 is CUDA's number for 12.4.
  std::size_t dots = 0;
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
    if (text[end] == '.' && ++dots == 2) break;
    ++end;
  }
  constexpr unsigned kFirstNumber = 1000;
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + end, number);
  if (dots == 0 && number >= kFirstNumber) return Version::from_cuda_number(static_cast<int>(number));
  const auto version = image::parse_version(text.substr(0, end));
  return version ? *version : Version{};
}

std::optional<ComputeCapability> known_cc(std::string_view text) {
  const auto arch = image::parse_arch(text);
  if (!arch || !is_known(arch->cc)) return std::nullopt;
  return arch->cc;
}

bool is_requirement(std::string_view before, std::string_view after) {
  static const RE2 kAfter(
      R"(\)?\s*(?:GPUs? |devices? |cards? )?(?:\+|>=|cubins?\b|at least\b|expected\b|(?:or|and) (?:up|lower|below|older|higher|above|newer|greater|later|better|more|over)\b|(?:is |are )?(?:the )?(?:required|minimum|needed)\b))",
      without_case());
  static const RE2 kBefore(
      R"(.*\b(?:minimum|at least|requires?|required|needs?|supports?)\b[^,;]{0,60}|.*\b(?:GPUs|devices|cards) (?:with|of|having)\b[^,;]{0,30}|(?:.*\b(?:kernels?|code|binary|library|was|is|were|are) |\W*)(?:compiled|built) (?:for|with) (?:CUDA )?(?:compute )?capabilit(?:y|ies):? |.*(?:(?:^|[^=-])>=? ?\(?|< ?\(?|\b(?:between|below|under|lower than|less than|older than) (?:sm_?)?))",
      without_case());
  // "requires 8.0, but your GPU has 7.5": what was asked for ends there.
  static const RE2 kTurn(R"(.*\b(?:but|yours?|got|found|detected|current)\b)", without_case());
  constexpr std::size_t kReach = 100;
  re2::StringPiece near(before.data(), before.size());
  near.remove_prefix(near.size() - std::min(near.size(), kReach));
  RE2::Consume(&near, kTurn);
  re2::StringPiece rest(after.data(), after.size());
  return RE2::Consume(&rest, kAfter) || RE2::FullMatch(near, kBefore);
}

// "(11.8)" behind the words for what built it is CUDA's version and no release of the package.
bool is_toolkit_of_build(std::string_view before, std::string_view whole, Version version) {
  static const RE2 kBuilt(R"(.*\b(?:compiled?|built|build)(?: with| against| for)?\s*)", without_case());
  const data::ToolkitRow* row = data::toolkit_at_most(version);
  return whole.find('(') != std::string_view::npos && row != nullptr && row->version == version &&
         RE2::FullMatch({before.data(), before.size()}, kBuilt);
}

void FactReader::begin_line(const std::string& text) {
  failed_ = failed_ ||
            std::ranges::any_of(clues_.hits, [](const LogMatch& hit) { return !hit.hint && !hit.brief; });
  software_.clear();
  speaker_.clear();
  line_packages_.clear();
  if (asked_ >= 0 && text.find_first_not_of(' ') != std::string::npos) {
    std::string fact;
    if (RE2::FullMatch(text, answer_patterns()[static_cast<std::size_t>(asked_)]->answer, &fact))
      take_answer(asked_, fact);
    asked_ = -1;
  }
  // Most lines ask nothing; the patterns need not look at them.
  if (text.find("get_") == std::string::npos && text.find("torch.") == std::string::npos) return;
  for (std::size_t row = 0; row < answer_patterns().size(); ++row) {
    if (RE2::PartialMatch(text, answer_patterns()[row]->question)) asked_ = static_cast<int>(row);
  }
}

void FactReader::end_line(const std::string& text) {
  static const RE2 kTries(R"((?i)\btr(?:ied|ying)\b[^.;]{0,40}:$)");
  static const RE2 kItem(R"(^\s*(?:[-*+]|\d+[.)]) )");
  static const RE2 kNative(
      R"(\b\w*(?:_C|_ext|_ops|_cuda|_kernels?|_backend|_cpp|_impl|cuda_\w+|ops)(?:\.\w+)+\()");
  lists_tries_ = (text.ends_with(':') && RE2::PartialMatch(text, kTries)) ||
                 (lists_tries_ && (text.empty() || RE2::PartialMatch(text, kItem)));
  if (frame_line_ != 0 && frame_line_ + 1 == clues_.lines && is_source(text))
    native_ = RE2::PartialMatch(text, kNative);
  for (PackageMinimum& each : clues_.minimums)
    if (each.software.empty() && !each.read) {
      each.software = software_;
      each.read = true;
    }
}

void FactReader::take_answer(int row, const std::string& fact) {
  switch (data::answers()[static_cast<std::size_t>(row)].kind) {
    case Answer::cc2:
      return add_device(capability_in(fact));
    case Answer::arch_list:
      return add_words(fact, file_.empty() ? "torch" : file_);
    case Answer::toolkit:
      return set_toolkit(leading_version(fact));
    case Answer::torch: {
      const std::size_t plus = std::min(fact.find('+'), fact.size());
      const std::string variant = fact.substr(std::min(plus + 1, fact.size()));
      return note_package({"torch", "torch", fact.substr(0, plus), variant, clues_.lines});
    }
  }
}

}  // namespace kshim::input
