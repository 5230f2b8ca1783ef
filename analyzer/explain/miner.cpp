// SPDX-License-Identifier: Apache-2.0
#include "analyzer/explain/miner.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "analyzer/explain/gpu_names.h"
#include "analyzer/explain/lookup.h"
#include "analyzer/explain/patterns.h"
#include "analyzer/knowledge/knowledge.h"

namespace kshim::explain {
namespace {

using image::Arch;
using image::ComputeCapability;
using image::Version;

// What is kept of a log; the first of each kind decides, so what comes later is worth less and less.
constexpr std::size_t kMostHits = 200;
constexpr std::size_t kMostOthers = 20;
constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostLists = 64;
constexpr std::size_t kMostImages = 256;
constexpr std::size_t kMostPackages = 200;
constexpr std::size_t kMostFrames = 200;
constexpr std::size_t kMostFiles = 32;
constexpr std::size_t kMostEnv = 32;
constexpr std::size_t kLongestLine = std::size_t{64} << 10;
constexpr std::size_t kLongestQuote = 300;

struct MessageRow {
  const char* id;
  const char* who;
  const char* pattern;
  int code;
  analysis::Cause cause;
  double confidence;
  bool brief;
  const char* tells;
};
constexpr bool anywhere = false;
constexpr bool brief = true;
constexpr MessageRow kMessages[] = {
#define KSHIM_MESSAGE(id, who, pattern, code, cause, confidence, scope, tells, sources) \
  {#id, who, pattern, code, analysis::Cause::cause, confidence, scope, tells},
#include "analyzer/explain/messages.def"
#undef KSHIM_MESSAGE
};

struct OtherRow {
  const char* pattern;
  const char* what;
  const char* remedy;
};
constexpr OtherRow kOthers[] = {
#define KSHIM_NOT_CUDA(pattern, what, remedy) {pattern, what, remedy},
#include "analyzer/explain/not_cuda.def"
#undef KSHIM_NOT_CUDA
};

enum class Kind : std::uint8_t {
  cc, cc2, sm, driver_module, driver_cuda, toolkit, toolkit_tag, cubin, ptx, file, arch_list, arch_words, ptx_words,
  arch100, package, torch_version, traceback, frame, env, container, nccl, sanitizer, run_time_compiler, python, windows,
};
struct ClueRow {
  Kind kind;
  const char* pattern;
};
constexpr ClueRow kClues[] = {
#define KSHIM_CLUE(kind, pattern) {Kind::kind, pattern},
#include "analyzer/explain/clues.def"
#undef KSHIM_CLUE
};

// CUDA's own words. A number counts where CUDA or one of its calls stands beside it.
constexpr const char* kNamePattern = R"(\b((?:CUDA_ERROR_|cudaError)\w+))";
constexpr const char* kShortNamePattern = R"(\b(?:ERROR_)?(JIT_COMPILER_NOT_FOUND|NO_BINARY_FOR_GPU|UNSUPPORTED_PTX_VERSION)\b)";
constexpr const char* kNumberPatterns[] = {
    R"(\bCUDA (?:runtime |driver )?(?:API )?error[: =#]*\(?(\d{1,3})\b)",
    R"(\b(?:cuda|cu[A-Z])\w*.{0,80}\b(?:err(?:or)?(?: code)?|code|status|result)[ :=#(]+(\d{1,3})\b)",
    R"(\berr(?:or)?(?: code)?[ :=#(]+(\d{3})\b)",
    R"(\b(?:CUDA|cudaError\w*|CUresult)\((\d{1,3})\))",
    R"(\((?:error )?(\d{3})\) ?(?:on|at|in|:).{0,60}\bcu)",
};
// What looks like one of CUDA's numbers in any line: HTTP's 404 and 500 are not.
bool is_telling_number(int code) {
  static constexpr int kTelling[] = {209, 218, 221, 222, 223, 300, 700, 701, 719, 803, 804, 48};
  return std::find(std::begin(kTelling), std::end(kTelling), code) != std::end(kTelling);
}

std::string cut(std::string text) {
  const std::size_t start = text.find_first_not_of(' ');
  text.erase(0, std::min(start, text.size()));
  if (text.size() > kLongestQuote) {
    text.resize(kLongestQuote);
    text += "...";
  }
  return text;
}

Version version_of(std::string_view text) {
  // 2.1.0 and 13.0.96 are versions too: the first two numbers count.
  std::size_t dots = 0;
  std::size_t end = 0;
  while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
    if (text[end] == '.' && ++dots == 2) break;
    ++end;
  }
  const auto version = image::parse_version(text.substr(0, end));
  return version ? *version : Version{};
}

// GPUs before Kepler have no rows any more, and users.
bool is_known(ComputeCapability cc) {
  return analysis::find_gpu(cc) != nullptr || cc.major == 1 || (cc.major == 2 && cc.minor < 2);
}

std::optional<ComputeCapability> known_cc(std::string_view text) {
  const auto arch = image::parse_arch(text);
  if (!arch || !is_known(arch->cc)) return std::nullopt;
  return arch->cc;
}

}  // namespace

std::string plain_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    if (letter == 0x1b && i + 1 < text.size()) {  // ECMA-48: CSI ... final byte; OSC ... BEL
      const char kind = text[++i];
      if (kind == '[') {
        while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) ++i;
        ++i;
      } else if (kind == ']') {
        while (i + 1 < text.size() && text[i + 1] != '\a' && text[i + 1] != 0x1b) ++i;
        ++i;
      }
      continue;
    }
    out += letter == '\t' || letter == '\r' ? ' ' : letter < ' ' || letter == 0x7f ? '?' : text[i];
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

const PackageClue* find_package(const Clues& clues, std::string_view name) {
  const auto same = std::find_if(clues.packages.begin(), clues.packages.end(),
                                 [&](const PackageClue& package) { return package.name == name; });
  return same == clues.packages.end() ? nullptr : &*same;
}

struct Miner::State {
  PatternSet patterns;
  int first_message = 0;
  int first_other = 0;
  int first_clue = 0;
  int name = 0;
  int short_name = 0;
  int message_text = 0;
  int first_number = 0;
  int gpu_name = 0;
  Clues clues;
  std::string file;  ///< heading of the images that follow
  std::vector<analysis::Place> traceback;
  bool after_frame = false;

  State() {
    for (const MessageRow& row : kMessages) patterns.add(row.pattern);
    first_other = static_cast<int>(std::size(kMessages));
    for (const OtherRow& row : kOthers) patterns.add(row.pattern);
    first_clue = first_other + static_cast<int>(std::size(kOthers));
    for (const ClueRow& row : kClues) patterns.add(row.pattern);
    name = patterns.add(kNamePattern);
    short_name = patterns.add(kShortNamePattern);
    message_text = patterns.add(message_pattern());
    first_number = message_text + 1;
    for (const char* pattern : kNumberPatterns) patterns.add(pattern);
    gpu_name = patterns.add(gpu_name_pattern());
    patterns.compile();
  }

  void add_hit(Hit hit, const std::string& text) {
    if (clues.hits.empty()) clues.frames = traceback;
    if (clues.hits.size() >= kMostHits) return;
    hit.line = clues.lines;
    hit.quote = cut(text);
    for (const Hit& known : clues.hits) {
      if (known.line == hit.line && known.code == hit.code && known.id == hit.id) return;
      if (known.line == hit.line && known.id.empty() && hit.id.empty() && known.old_code == 0 && hit.old_code != 0)
        return;  // a name beside the number says which numbering it is
    }
    clues.hits.push_back(std::move(hit));
  }

  void message(int index, const std::string& text) {
    const MessageRow& row = kMessages[index];
    Hit hit;
    hit.id = row.id;
    hit.who = row.who;
    hit.code = row.code;
    hit.cause = row.cause;
    hit.confidence = row.confidence;
    hit.tells = row.tells;
    hit.brief = row.brief;
    hit.groups = patterns.named_groups(index, text);
    hit.column = patterns.position(index, text);
    if (hit.groups.empty()) return;
    note_groups(hit.groups);
    add_hit(std::move(hit), text);
  }

  void note_groups(const std::map<std::string, std::string>& groups) {
    const auto get = [&](const char* key) {
      const auto found = groups.find(key);
      return found == groups.end() ? std::string() : found->second;
    };
    if (const std::string cc = get("cc"); !cc.empty()) add_device(known_cc(cc));
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
      clues.driver = Version::from_cuda_number(number);
      clues.driver_line = clues.lines;
    }
    if (const std::string lib = get("lib"); !lib.empty() && clues.files.size() < kMostFiles) clues.files.push_back(lib);
  }

  void add_device(std::optional<ComputeCapability> cc, std::string name_text = {}) {
    if (!cc || clues.devices.size() >= kMostDevices) return;
    for (DeviceClue& known : clues.devices) {
      if (known.cc != *cc) continue;
      if (known.name.empty()) known.name = std::move(name_text);
      known.by_name = known.by_name && !name_text.empty();
      return;
    }
    const bool by_name = !name_text.empty();
    clues.devices.push_back({*cc, std::move(name_text), clues.lines, by_name});
  }

  void own_words(int index, const std::string& text) {
    Hit hit;
    const CudaError* error = nullptr;
    if (index == name || index == short_name) {
      const std::string written = patterns.first_group(index, text);
      const NamedError named = find_by_name(written);
      if (named.error == nullptr || named.guessed) return;
      error = named.error;
      if (!named.really.empty() && index == name) hit.as_written = written;
    } else if (index == message_text) {
      error = find_by_message(patterns.first_group(index, text));
    } else {
      const auto number = parse_number(patterns.first_group(index, text));
      // The third pattern is any program's "error 404".
      if (!number || (index == first_number + 2 && !is_telling_number(*number))) return;
      error = find_cuda_error(*number);
      if (const OldCode* old = find_old_code(*number); old != nullptr && *number != 4) {
        hit.old_code = *number;
        error = find_cuda_error(old->now);
      }
    }
    if (error == nullptr || error->code == 0) return;
    hit.code = error->code;
    hit.column = patterns.position(index, text);
    add_hit(std::move(hit), text);
  }

  void add_image(image::ImageKind kind, std::string_view arch_text, const std::string& owner, bool by_itself = true) {
    const auto arch = image::parse_arch(arch_text);
    if (!arch || !is_known(arch->cc)) return;
    auto list = std::find_if(clues.lists.begin(), clues.lists.end(),
                             [&](const ImageList& known) { return known.owner == owner; });
    if (list == clues.lists.end()) {
      if (clues.lists.size() >= kMostLists) return;
      clues.lists.push_back({owner, by_itself, {}, clues.lines});
      list = clues.lists.end() - 1;
    }
    const bool known = std::any_of(list->images.begin(), list->images.end(), [&](const image::Candidate& image) {
      return image.kind == kind && image.arch == *arch;
    });
    if (!known && list->images.size() < kMostImages) list->images.push_back({kind, *arch, {}});
  }

  // "sm_50 sm_60 compute_90" in one line, as torch.cuda.get_arch_list() and its relatives print them.
  void add_words(const std::string& words, const std::string& owner) {
    static const RE2 kWord(R"(\b(sm_|compute_)(\d{2,3}[af]?)\b)");
    re2::StringPiece rest(words);
    std::string kind;
    std::string number;
    while (RE2::FindAndConsume(&rest, kWord, &kind, &number))
      add_image(kind == "sm_" ? image::ImageKind::cubin : image::ImageKind::ptx, number, owner);
  }

  void add_numbers(const std::string& words, image::ImageKind kind, const std::string& owner, bool hundredfold) {
    static const RE2 kNumber(R"((\d{2,4}[af]?))");
    re2::StringPiece rest(words);
    std::string number;
    while (RE2::FindAndConsume(&rest, kNumber, &number))
      add_image(kind, hundredfold && number.size() > 2 ? number.substr(0, number.size() - 1) : number, owner);
  }

  void add_package(const std::string& text) {
    static const RE2 kSplit(R"(^(\S+?)(?: version)?[ =@:>-]*v?(\d+\.\d+[\w.]*)(?:\+(\w+))?)");
    std::string package;
    std::string version;
    std::string variant;
    if (clues.packages.size() >= kMostPackages || !RE2::PartialMatch(text, kSplit, &package, &version, &variant)) return;
    std::transform(package.begin(), package.end(), package.begin(),
                   [](unsigned char letter) { return static_cast<char>(letter == '_' ? '-' : std::tolower(letter)); });
    if (find_package(clues, package) == nullptr) clues.packages.push_back({package, version, variant, clues.lines});
    if (variant.starts_with("cu") && !clues.toolkit.known()) set_tag(variant.substr(2));
  }

  void set_tag(const std::string& digits) {
    if (digits.size() != 3 || clues.toolkit.known()) return;
    clues.toolkit = version_of(digits.substr(0, 2) + '.' + digits.substr(2));
    clues.toolkit_line = clues.lines;
  }

  void clue(int index, const std::string& text) {
    const Kind kind = kClues[index - first_clue].kind;
    const std::string fact = patterns.first_group(index, text);
    if (fact.empty()) return;
    switch (kind) {
      case Kind::cc: add_device(known_cc(fact)); break;
      case Kind::cc2: {
        std::string cc = fact;
        std::replace(cc.begin(), cc.end(), ',', '.');
        cc.erase(std::remove(cc.begin(), cc.end(), ' '), cc.end());
        add_device(known_cc(cc));
        break;
      }
      case Kind::sm: add_device(known_cc("sm_" + fact)); break;
      case Kind::driver_module: set_module(fact); break;
      case Kind::driver_cuda:
        clues.driver = version_of(fact);
        clues.driver_line = clues.lines;
        break;
      case Kind::toolkit:
        clues.toolkit = version_of(fact);
        clues.toolkit_line = clues.lines;
        break;
      case Kind::toolkit_tag: set_tag(fact); break;
      case Kind::cubin: add_image(image::ImageKind::cubin, fact, file, false); break;
      case Kind::ptx: add_image(image::ImageKind::ptx, fact, file, false); break;
      case Kind::file: file = fact; break;
      case Kind::arch_list: add_words(fact, file); break;
      case Kind::arch_words: add_numbers(fact, image::ImageKind::cubin, file, false); break;
      case Kind::ptx_words: add_numbers(fact, image::ImageKind::ptx, file, false); break;
      case Kind::arch100: add_numbers(fact, image::ImageKind::cubin, "ggml", true); break;
      case Kind::package: add_package(fact); break;
      case Kind::torch_version: add_package("torch==" + fact); break;
      case Kind::traceback: traceback.clear(); break;
      case Kind::frame: add_frame(patterns.groups(index, text)); break;
      case Kind::env: add_env(fact); break;
      case Kind::container: clues.container = true; break;
      case Kind::nccl: clues.nccl = true; break;
      case Kind::sanitizer: clues.sanitizer = true; break;
      case Kind::run_time_compiler:
        clues.run_time_compiler = true;
        if (clues.compiler.empty()) clues.compiler = fact;
        break;
      case Kind::python: clues.python = true; break;
      case Kind::windows: clues.windows = true; break;
    }
  }

  // Exact where the branch has a row; the CUDA version printed beside it says more and comes with another pattern.
  void set_module(const std::string& fact) {
    if (!clues.kernel_module.empty()) return;
    clues.kernel_module = fact;
    unsigned branch = 0;
    std::from_chars(fact.data(), fact.data() + fact.size(), branch);
    const analysis::ToolkitRow* row = analysis::toolkit_of_branch(branch);
    if (row == nullptr || clues.driver.known()) return;
    clues.driver = row->version;
    clues.driver_line = clues.lines;
  }

  void add_frame(const std::vector<std::string>& groups) {
    if (groups.size() < 4 || !clues.hits.empty()) return;
    analysis::Place place;
    place.file = groups[1];
    std::from_chars(groups[2].data(), groups[2].data() + groups[2].size(), place.line);
    place.function = groups[3];
    place.python = true;
    if (traceback.size() >= kMostFrames) traceback.erase(traceback.begin());
    traceback.push_back(std::move(place));
    clues.python = true;
  }

  void add_env(const std::string& fact) {
    const std::size_t mark = fact.find('=');
    std::string key = fact.substr(0, mark);
    while (!key.empty() && key.back() == ' ') key.pop_back();
    std::string value = fact.substr(mark + 1);
    value.erase(std::remove_if(value.begin(), value.end(), [](char c) { return c == '"' || c == '\'' || c == ' '; }),
                value.end());
    if (clues.env.size() < kMostEnv) clues.env.emplace(std::move(key), std::move(value));
  }
};

Miner::Miner() : state_(std::make_unique<State>()) {}
Miner::~Miner() = default;

void Miner::line(std::string_view bytes) {
  State& state = *state_;
  ++state.clues.lines;
  state.clues.bytes += bytes.size() + 1;
  if (bytes.size() > kLongestLine) {
    ++state.clues.cut_lines;
    bytes = bytes.substr(0, kLongestLine);
  }
  const std::string text = plain_line(bytes);
  const std::vector<int> found = state.patterns.match(text);  // a copy: the groups are matched one by one
  for (const int index : found) {  // facts first: a hit takes the traceback as it stands
    if (index >= state.first_clue && index < state.name) state.clue(index, text);
  }
  for (const int index : found) {
    if (index < state.first_other) {
      state.message(index, text);
    } else if (index < state.first_clue) {
      const OtherRow& row = kOthers[index - state.first_other];
      if (state.clues.others.size() < kMostOthers)
        state.clues.others.push_back({state.clues.lines, cut(text), row.what, row.remedy});
    } else if (index == state.gpu_name) {
      for (const GpuName& gpu : gpus_named_in(text)) state.add_device(gpu.cc, gpu.name);
    } else if (index >= state.name) {
      state.own_words(index, text);
    }
  }
}

Clues Miner::take() { return std::move(state_->clues); }

}  // namespace kshim::explain
