// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/miner.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/input/log/fact_reader.h"
#include "analyzer/input/log/lookup.h"

namespace kshim::input {
using data::MessageScope;
using data::Sign;

namespace {

// What is kept of a log; the first of each kind decides, so what comes later is worth less and less.
constexpr std::size_t kMaxHits = 200;
constexpr std::size_t kMaxOthers = 20;
constexpr std::size_t kMaxTracebacks = 16;
constexpr std::size_t kMaxFiles = 32;
constexpr std::size_t kMaxLogLine = std::size_t{64} << 10;
constexpr std::size_t kMaxQuoteLength = 300;

// AMD's HIP speaks in CUDA's words: its lines are none of CUDA's.
constexpr const char* kHipPattern =
    R"(\b(?:HIP|ROCm) (?:runtime |driver )?error\b|\bHIP out of memory|\bNo HIP GPUs|(?-i:\bhip[A-Z]\w+)|\bHSA_STATUS|\brocBLAS\b|\bMIOpen\b|\bTensileLibrary|\bAMD_SERIALIZE_KERNEL|\bgfx\d{3,4}[a-f]?\b|\d\+rocm\d)";

// CUDA's own words. A number counts where CUDA or one of its calls stands beside it.
constexpr const char* kNamePattern = R"(\b((?:CUDA_ERROR_|cudaError)\w+))";
// As bindings for other languages name them: ERROR_INVALID_PTX of CUDA.jl, NoBinaryForGpu of Rust's.
constexpr const char* kShortNamePattern =
    R"(\b(?:ERROR_)?(JIT_COMPILER_NOT_FOUND|NO_BINARY_FOR_GPU|NoBinaryForGpu|UNSUPPORTED_PTX_VERSION|UnsupportedPtxVersion|INVALID_PTX|InvalidPtx|NoKernelImageForDevice|InvalidDeviceFunction|ERROR_INVALID_IMAGE)\b)";
// As .NET names them: ErrorIllegalAddress.
constexpr const char* kBoundNamePattern = R"((?-i:\bError((?:[A-Z][a-z]+){2,})\b))";
// What stands behind these words is a message of CUDA's, be it ever so common a phrase.
constexpr const char* kAnyMessagePattern =
    R"((?:\bCUDA (?:runtime |driver )?error: |\bCUDA error \([^)]{1,120}\): |\berror: CUDA\b[^:]{0,40}[\] ].{0,100}?: |\bCUDA error \S+:\d+ ['"]|\bFailed to [^(]{0,80}\b(?:device|kernels?|CUDA)\b[^(]{0,40}\((?:error code )?)([A-Za-z][\w ,()/'-]{3,90}))";
// "Illegal address in CUDA queue copy_from_device".
constexpr const char* kMessageOfQueuePattern = R"((?:^|[\]:>]) *([A-Za-z][\w -]{3,60}) in CUDA queue\b)";
// A call or a source line of CUDA's. Beside it, a whole message of CUDA's between marks that set it apart is
// one: "cudaHostAlloc: out of memory", "invalid argument in cudaMemcpyAsync", "unknown error pool.cu 31".
constexpr const char* kCallBefore =
    R"((?:\b(?:cuda|cu)[A-Z][A-Za-z]{2}\w+|\.cuh?[:(]\d).{0,160}[:=('"\]-] ?$)";
constexpr const char* kMessageEnds = R"(^(?:["'.,;:)\]([]|\s*$| (?:in|at|from|on) ))";
constexpr const char* kMessageBegins = R"((?:^|[:=('"\]-]) ?$)";
constexpr const char* kCallBehind =
    R"(^["')]{0,2},?(?:(?: (?:in|at|from|on|while|when|calling|returned by)\b| ?[(:@]).{0,80}(?:\b(?:cuda|cu)[A-Z][A-Za-z]{2}\w+|\.cuh?[:(]\d)| \S{1,200}\.cuh? \d))";
bool is_beside_call(const std::string& text, std::string_view message) {
  static const RE2 kPatterns[] = {kCallBefore, kMessageEnds, kMessageBegins, kCallBehind};
  const std::size_t at = text.find(message);
  if (at == std::string::npos) return false;
  constexpr std::size_t kLooked = 240;
  const std::size_t from = at - std::min(at, kLooked);
  const std::string_view whole(text);
  const re2::StringPiece before(text.data() + from, at - from);
  const std::string_view rest = whole.substr(at + message.size());
  const re2::StringPiece behind(rest.data(), rest.size());
  return (RE2::PartialMatch(before, kPatterns[0]) && RE2::PartialMatch(behind, kPatterns[1])) ||
         (RE2::PartialMatch(before, kPatterns[2]) && RE2::PartialMatch(behind, kPatterns[3]));
}
// Libraries number their statuses by themselves, up to here.
constexpr const char* kLibraryPattern = R"(\bcu(?:blas|dnn|fft|solver|sparse|rand)(?:[A-Z_]|Lt|\b)\w*)";
constexpr int kMaxLibraryStatus = 20;
/// "CUDA Error:", and below it file, line and number, perhaps with empty lines between.
constexpr std::uint64_t kLinesBelowHeading = 12;
constexpr const char* kNumberPatterns[] = {
    R"(\bCUDA (?:runtime |driver )?(?:API )?(?:error|failure)[: =#]*\(?(\d{1,3})\b)",
    // A path, a package or a device by that name is none: "nvidia/cuda:12.4 status 200".
    // Nor is what the system says: "Os { code: 2, kind: NotFound".
    R"((?:(?-i:\b(?:cuda|cu)[A-Z]\w*)|(?:^|[^\w./-])CUDA(?:[ (]|_[a-z]))(?:.{0,80}(?:[^{ ]|(?:[^O]s|[^s ]) ?\{))? *\b(?:err(?:or)?(?: code)?|code|status|result|return(?:ed|s))[ :=#(]+(\d{1,3})\b)",
    R"(\berr(?:or)?(?: code)?[ :=#(]+(\d{3})\b)",
    R"(\b(?:CUDA|cudaError\w*|CUresult)\((\d{1,3})\))",
    R"((?:^|[^\w.])\((?:error )?(\d{3})\) ?(?:on|at|in|:).{0,60}\bcu)",  // and no line: "x.cu(100) :
                                                                         // cudaMalloc"
    R"(\[(\d{1,3})\] Call to cu)",
    R"(\bcode (\d{3}), ERROR_)",
    R"(\b(?:check failed|error == cudaSuccess).{0,40}\((\d{1,3}) vs\. 0\))",
    R"(\binvalid device function[ :=#]*\(?(8|98)\b)",
    R"(\berr(?:or)?(?: code)?[ :=#(]+(8|98)\)? *[:,-]? *"?invalid device function)",
    R"(\bcudaGetDeviceCount\(\).{0,240}\bError (\d{1,3}): )",
    R"((?:(?-i:\b(?:cuda|cu)[A-Z]\w*)|(?:^|[^\w./-])(?:nv)?CUDA(?:rt)?[ (]).{0,80}\bfail(?:ure|ed)?[ :=#(]{1,3}(\d{1,3})\b)",
};
// Beside one of these, a number of three digits may be CUDA's; a disk's error 700 is not, nor a queue's of
// GPUs.
constexpr const char* kCudaWordPattern =
    R"((?:^|[^\w./-])cuda(?:[^:/.\w-]|$)|(?-i:\bcuda[A-Z_])|nvrtc|\bptx|\bkernel (?:image|launch)|(?-i:\bcu[A-Z]\w+))";
// A sentence that programs of any kind print ("unsupported architecture") is about CUDA beside one of these.
constexpr const char* kCudaTokenPattern =
    R"(cuda|nvidia|nvrtc|nvcc|nvvm|\bptx|cubin|fatbin|\b(?:lib)?cu(?:blas|dnn|dss|fft|solver|sparse|rand|tlass|te|statevec|densitymat|pauliprop)|(?-i:\bcu[A-Z]\w+)|tensorrt|flash.?att|triton|\b[k_]?sm_?\d{2,3}|\bsm (?:version )?\d{1,2}\.\d|\.cuh?\b|flash_?infer|deep_?gemm|cutlass|fmha|sgl.kernel|\bactive drivers \(|xformers|bitsandbytes|compute[_ ](?:cap|\d\d)|\bCC ?\d{1,2}\.\d|device capability|\bcapability\b.{0,20}\d\.\d|\bcapability: ?\d\d\b|\b(?:Kepler|Maxwell|Pascal|Volta|Turing|Ampere|Ada Lovelace|Hopper|Blackwell)\b|\b(?:GTX|RTX|Quadro|Tesla|GeForce|Jetson|Xavier|Orin)\b|(?-i:\b(?:[ABHTVPKLM]\d{1,3}0|GH200|L4|T4|L40S?)\b))";
// Beside one of these alone, it is where another line of the log has one of those.
constexpr const char* kGpuWordPattern = R"(\bGPUs?\b|\bdevices?\b|\bgraphics cards?\b)";
/// The speakers of rows of `messages` that may be any program, and a person.
constexpr std::string_view kAnyProgram = "programs";
constexpr std::string_view kPerson = "a person";
// What looks like one of CUDA's numbers in such a line: HTTP's 404 and 500 are not.
bool is_telling_number(int code) {
  constexpr int kNoImageBeforeCuda10 = 48;  // the table old_codes
  return code_has(code, code_trait::telling_number) || code == kNoImageBeforeCuda10;
}

// "[Bug]: it fails": the words of a person, which no program printed.
bool is_title(std::string_view line) {
  const std::size_t begin = line.find_first_not_of("#[ ");
  if (begin == std::string_view::npos || begin > 4) return false;
  const std::string_view word = line.substr(begin, line.find_first_of("]:", begin) - begin);
  constexpr std::array kKinds = {"bug", "issue", "question", "help", "usage", "installation", "title"};
  return line.size() > begin + word.size() && word.size() <= 12 &&
         std::ranges::any_of(kKinds, [&](std::string_view kind) {
           return std::ranges::equal(kind, word, [](char a, char b) { return a == core::to_lower(b); });
         });
}

/// Without the marks of bold type: "**Driver:** 535.54" of issue forms.
std::string without_bold(const std::string& text) {
  if (text.find("**") == std::string::npos) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*' && i + 1 < text.size() && text[i + 1] == '*') {
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Cut {
  std::string text;
  core::TextPart part;
};

// Of a long line, what stands around the part.
Cut cut(const std::string& line, std::string_view matched = {}) {
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  Cut out{line.substr(start), {}};
  if (const std::size_t at = out.text.find(matched); !matched.empty() && at != std::string::npos)
    out.part = {at, at + matched.size()};
  if (out.text.size() <= kMaxQuoteLength) return out;
  constexpr std::size_t kAfter = kMaxQuoteLength / 3;
  const std::size_t end = out.part.to + kAfter;
  const std::size_t from = end <= kMaxQuoteLength ? 0 : std::min(end, out.text.size()) - kMaxQuoteLength;
  const std::string before = from == 0 ? "" : "...";
  const std::string after = from + kMaxQuoteLength < out.text.size() ? "..." : "";
  out.text = before + out.text.substr(from, kMaxQuoteLength) + after;
  const auto moved = [&](std::size_t at) { return at <= from ? before.size() : at - from + before.size(); };
  if (out.part.to != 0) out.part = {moved(out.part.from), moved(out.part.to)};
  return out;
}

// What logfmt and JSON wrap: msg="...", error="...", "message": "...". Each value is a line of its own.
std::vector<std::string> wrapped(const std::string& text) {
  static const RE2 kValue(
      R"re((?i)\b(?:msg|message|err|error|reason|exception|stderr|details?)"?(?:=|\s*:\s*)"((?:[^"\\]|\\.){4,900})")re");
  std::vector<std::string> out;
  constexpr std::size_t kMost = 4;
  if (text.find("=\"") == std::string::npos && text.find("\":") == std::string::npos) return out;
  re2::StringPiece rest(text);
  std::string value;
  while (out.size() < kMost && RE2::FindAndConsume(&rest, kValue, &value)) {
    std::string plain;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) {
        const char next = value[++i];
        plain += next == 'n' || next == 't' || next == 'r' ? ' ' : next;
      } else {
        plain += value[i];
      }
    }
    while (plain.ends_with(' ')) plain.pop_back();
    out.push_back(std::move(plain));
  }
  return out;
}

}  // namespace

struct Vocabulary {
  PatternSet patterns;
  FactPatterns facts{patterns};
  int first_message = 0;
  int first_other = 0;
  int name = 0;
  int short_name = 0;
  int bound_name = 0;
  int message_text = 0;
  int any_message = 0;
  int message_of_queue = 0;
  int every_message = 0;
  int first_number = 0;
  int first_sign = 0;
  int hip = 0;
  int cuda_word = 0;
  int library = 0;
  int cuda_token = 0;
  int gpu_word = 0;

  Vocabulary() {
    first_message = patterns.size();
    for (const auto& row : data::messages()) patterns.add(row.pattern);
    first_other = patterns.size();
    for (const auto& row : data::not_cuda()) patterns.add(row.pattern);
    name = patterns.add(kNamePattern);
    short_name = patterns.add(kShortNamePattern);
    bound_name = patterns.add(kBoundNamePattern);
    message_text = patterns.add(message_pattern());
    any_message = patterns.add(kAnyMessagePattern);
    message_of_queue = patterns.add(kMessageOfQueuePattern);
    every_message = patterns.add(every_message_pattern());
    first_number = patterns.size();
    for (const char* pattern : kNumberPatterns) patterns.add(pattern);
    first_sign = patterns.size();
    for (const auto& row : data::signs()) patterns.add(row.pattern);
    hip = patterns.add(kHipPattern);
    cuda_word = patterns.add(kCudaWordPattern);
    library = patterns.add(kLibraryPattern);
    cuda_token = patterns.add(kCudaTokenPattern);
    gpu_word = patterns.add(kGpuWordPattern);
  }
};

namespace {

const Vocabulary& vocabulary() {
  static const Vocabulary words;
  return words;
}

}  // namespace

std::string plain_line(std::string_view text) {
  // Most lines hold nothing to clean.
  const bool clean = std::none_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte < ' ' || byte == 0x7f;
  });
  if (clean) {
    const std::size_t end = text.find_last_not_of(' ');
    return std::string(text.substr(0, end == std::string_view::npos ? 0 : end + 1));
  }
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

namespace {

// The driver's kernel module breaks a message into lines of the kernel's log.
std::string_view after_nvrm(std::string_view text) {
  constexpr std::string_view kMark = "NVRM: ";
  const std::size_t at = text.find(kMark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + kMark.size());
}

}  // namespace

struct LogParser::State {
  const Vocabulary& words = vocabulary();
  const PatternSet& patterns = words.patterns;
  LogFacts clues;
  FactReader facts{words.patterns, words.facts, clues};
  std::string shown;              ///< the line at hand, as it is quoted
  std::vector<int> found;         ///< its patterns
  std::vector<LogMatch> matched;  ///< rows of the table messages, in the line at hand
  bool says_cuda = false;         ///< a line so far has a word of CUDA's
  std::string kernel_message;     ///< of the driver's kernel module, as far as it stands there
  std::string service;            ///< whose lines they are, as docker compose writes it before each
  std::string speaker;            ///< the program of that name
  bool lacks_so = false;          ///< a shared object was looked for and not found
  std::uint64_t headed = 0;       ///< the last line that is a heading: "CUDA Error:"

  bool has(int pattern) const { return std::binary_search(found.begin(), found.end(), pattern); }
  bool has(Sign sign) const {
    return std::any_of(found.begin(), found.end(), [&](int index) {
      return index >= words.first_sign && index < words.hip &&
             data::signs()[static_cast<std::size_t>(index - words.first_sign)].kind == sign;
    });
  }

  /// `whole`: what matched, of a hit without groups.
  void add_hit(LogMatch hit, std::string_view whole = {}) {
    if (clues.hits.size() >= kMaxHits) return;
    hit.line = clues.lines;
    hit.software = facts.software();
    hit.project = project_in(shown);
    hit.speaker = facts.speaker();
    hit.goes_on = has(Sign::goes_on);
    hit.thrown = has(Sign::thrown);
    hit.hint = hit.hint || has(Sign::warns);
    Cut quoted = cut(shown, hit.groups.contains("") ? hit.groups.at("") : whole);
    hit.quote = std::move(quoted.text);
    hit.part = quoted.part;
    hit.brief = hit.brief || is_title(without_bold(shown));
    if (clues.hits.size() < kMaxTracebacks) hit.frames = facts.traceback();
    hit.calls_native = facts.calls_native();
    for (LogMatch& known : clues.hits) {
      if (known.line != hit.line || !known.id.empty() || !hit.id.empty()) {
        if (known.line == hit.line && known.code == hit.code && known.id == hit.id) return;
        continue;
      }
      // A name or a message beside a number says by which numbering it counts.
      if (known.code == hit.code) known.old_code = std::max(known.old_code, hit.old_code);
      if (known.code == hit.code || hit.old_code != 0) return;
    }
    clues.hits.push_back(std::move(hit));
  }

  /// Whether the traceback above names a file of a package that is all about CUDA.
  bool is_in_cuda_code() const {
    static const RE2 kToken(std::string("(?i)").append(kCudaTokenPattern));
    return std::ranges::any_of(
        facts.traceback(), [](const core::Place& frame) { return RE2::PartialMatch(frame.file, kToken); });
  }

  void message(int index, const std::string& text) {
    const data::MessageRow& row = data::messages()[static_cast<std::size_t>(index - words.first_message)];
    const bool by_anybody = row.confidence > 0 && row.who == kAnyProgram && !has(words.cuda_token);
    if (by_anybody && !has(words.gpu_word) && !is_in_cuda_code()) return;
    LogMatch hit;
    hit.needs_cuda = by_anybody || row.who == kPerson;
    if (row.confidence > 0) hit.id = row.id;  // else: CUDA's own words
    hit.who = row.who;
    hit.code = row.code;
    hit.cause = row.cause;
    hit.confidence = row.confidence;
    hit.tells = row.tells;
    hit.brief = row.scope == MessageScope::brief;
    hit.vague = row.scope == MessageScope::vague;
    hit.hint = hit.vague || row.scope == MessageScope::hint;
    // The first of many such lines: a long log has room for what is known.
    if (hit.vague &&
        std::ranges::any_of(clues.hits, [&](const LogMatch& known) { return known.id == row.id; }))
      return;
    hit.groups = patterns.named_groups(index, text);
    // One pattern may have a fact in several places: gpu, gpu2 ...
    for (auto each = hit.groups.begin(); each != hit.groups.end();) {
      const std::string name = each->first.substr(0, each->first.find_last_not_of("0123456789") + 1);
      if (name.empty() || name == each->first) {
        ++each;
        continue;
      }
      hit.groups.emplace(name, std::move(each->second));
      each = hit.groups.erase(each);
    }
    if (hit.groups.empty()) return;
    hit.column = text.find(hit.groups.at(""));
    matched.push_back(hit);
    add_hit(std::move(hit));
  }

  void own_words(int index, const std::string& text) {
    if (clues.hits.size() >= kMaxHits) return;
    LogMatch hit;
    const CudaError* error = nullptr;
    if (index == words.name || index == words.short_name) {
      const std::string written = patterns.first_group(index, text);
      const NamedError named = find_by_name(written);
      if (named.error == nullptr || named.guessed) return;
      error = named.error;
      if (!named.really.empty() && index == words.name) hit.as_written = written;
    } else if (index == words.bound_name) {
      const NamedError named = find_by_name("cudaError" + patterns.first_group(index, text));
      if (named.error != nullptr && !named.guessed && has(words.cuda_word)) error = named.error;
    } else if (index == words.any_message || index == words.message_of_queue) {
      error = find_whole_message(patterns.first_group(index, text));
    } else if (index == words.message_text) {
      error = find_by_message(patterns.groups(index, text).front());
    } else if (index == words.every_message) {
      const std::string message = patterns.groups(index, text).front();
      if (is_beside_call(text, message)) error = find_whole_message(message);
    } else {
      const std::vector<std::string> groups = patterns.groups(index, text);
      const auto number = groups.size() > 1 ? parse_number(groups[1]) : std::nullopt;
      // "cudarc/build-script (exit status: 101)": what a program ended with is none of CUDA's numbers.
      if (number && groups[0].find("exit ") != std::string::npos) return;
      // "CUDA kernel build failed with error code 6" has NVRTC's number.
      const bool of_compiler = number && *number < kMaxLibraryStatus &&
                               (groups[0].find("build failed") != std::string::npos ||
                                groups[0].find("compilation failed") != std::string::npos);
      if (of_compiler) return;
      if (number && *number < kMaxLibraryStatus && index != words.first_number && has(words.library)) return;
      // The third pattern is any program's "error 404".
      const bool any_error = index == words.first_number + 2;
      const bool by_cuda =
          has(words.cuda_word) || (headed != 0 && clues.lines - headed <= kLinesBelowHeading);
      if (!number || (any_error && (!is_telling_number(*number) || !by_cuda))) return;
      error = find_cuda_error(*number);
      if (const OldCode* old = find_old_code(*number); old != nullptr && *number != 4) {
        hit.old_code = *number;
        error = find_cuda_error(old->now);
      }
    }
    if (error == nullptr || error->code == 0) return;
    hit.code = error->code;
    const std::string whole = patterns.groups(index, text).front();
    hit.column = text.find(whole);
    add_hit(std::move(hit), whole);
  }

  void take_groups(const LogMatch& match) {
    facts.take_groups(match.groups);
    const auto lib = match.groups.find("lib");
    if (lib == match.groups.end()) return;
    if (clues.files.size() < kMaxFiles) clues.files.push_back(lib->second);
    // What looks for an .so runs on no Windows.
    if (match.cause == core::Cause::library_not_found && core::contains(lib->second, ".so")) lacks_so = true;
  }

  // Of two rows that match, one within the other, the longer says more: "ptxas FILE, line 5; fatal:
  // Unsupported .version 8.4" is the program, and not the driver. What the others say beside their failure
  // counts.
  void drop_contained() {
    const auto end_of = [](const LogMatch& hit) { return hit.column + hit.groups.at("").size(); };
    const auto contained = [&](const LogMatch& inner) {
      return std::ranges::any_of(matched, [&](const LogMatch& outer) {
        if (&outer == &inner || inner.id.empty() || outer.id.empty() || outer.vague) return false;
        const bool within = outer.column <= inner.column && end_of(inner) <= end_of(outer);
        const bool same = outer.column == inner.column && end_of(inner) == end_of(outer);
        return within && (!same || &outer < &inner);
      });
    };
    std::vector<const LogMatch*> inner;
    bool gpu_named = false;
    for (const LogMatch& match : matched) {
      if (contained(match)) {
        inner.push_back(&match);
        continue;
      }
      gpu_named = gpu_named || !group(match, "gpu").empty() || !group(match, "cc").empty();
      take_groups(match);
    }
    // "capability 6.1. The minimum is 7.0" read by a row for the other order names the wrong GPU.
    for (const LogMatch* match : inner) {
      std::erase_if(clues.hits,
                    [&](const LogMatch& hit) { return hit.line == clues.lines && hit.id == match->id; });
      if (!gpu_named) take_groups(*match);
    }
    matched.clear();
  }

  // "web-1  | " before two lines on end, and "[pod/web-5d9f/server] ".
  void drop_service(std::string& text) {
    static const RE2 kService(R"(^([a-z0-9][\w.-]{1,60}) +\| ?)");
    static const RE2 kPod(R"(^\[pod/([a-z][a-z-]*[a-z])[\w.-]*/([\w.-]+)\] ?)");
    re2::StringPiece rest(text);
    std::string name;
    std::string container;
    speaker.clear();
    const bool found_one = text.find(" | ") != std::string::npos && RE2::Consume(&rest, kService, &name);
    if (found_one && name == service) {
      // The line before was the first of them.
      for (LogMatch& hit : clues.hits)
        if (hit.line + 1 == clues.lines && hit.speaker.empty()) hit.speaker = program_of_word(name);
      clues.shows.insert({"container", "compose"});
      speaker = program_of_word(name);
    } else if (text.starts_with("[pod/") && RE2::Consume(&rest, kPod, &name, &container)) {
      speaker = program_of_word(container);
      if (speaker.empty()) speaker = program_of_word(name);
    }
    if (!speaker.empty() || (found_one && name == service)) text.erase(0, text.size() - rest.size());
    service = std::move(name);
  }

  // What a service is called may be a package.
  void take_speaker() {
    if (speaker.empty()) return;
    facts.set_speaker(speaker);
    patterns.match(speaker, found);
    for (const int index : found)
      if (words.facts.is_software(index)) facts.take(index, speaker);
  }

  void other(int index, const std::string& text) {
    const data::NotCudaRow& row = data::not_cuda()[static_cast<std::size_t>(index - words.first_other)];
    if (clues.others.size() >= kMaxOthers) return;
    Cut quoted = cut(shown, patterns.groups(index, text).front());
    std::string file;
    for (const auto& [name, fact] : patterns.named_groups(index, text))
      if (name.starts_with("file")) file = fact;
    clues.others.push_back(
        {clues.lines, std::move(quoted.text), quoted.part, &row, std::move(file), facts.software()});
  }

  bool is_of_source(int index) const {
    return index >= words.first_message && index < words.first_other &&
           data::messages()[static_cast<std::size_t>(index - words.first_message)].scope ==
               MessageScope::source;
  }

  /// The failures that `text`, which is the line or a part of it, tells of.
  void failures(const std::string& text) {
    const bool hip = has(words.hip);
    clues.rocm = clues.rocm || hip;
    const bool source = facts.is_source(text);
    for (const int index : found) {
      if (words.facts.has(index) || index >= words.first_sign) continue;
      if (source && !is_of_source(index)) continue;
      if (index >= words.first_other && index < words.name)
        other(index, text);
      else if (!hip && index >= words.name)
        own_words(index, text);
      else if (!hip)
        message(index, text);
    }
    drop_contained();
  }

  void read(const std::string& text) {
    facts.begin_line(text);
    take_speaker();
    patterns.match(text, found);
    for (const int index : found)  // facts first: a hit takes the traceback as it stands
      if (words.facts.has(index) && !words.facts.is_late(index)) facts.take(index, text);
    for (const int index : found)
      if (words.facts.is_late(index)) facts.take(index, text);
    facts.end_line(text);
    says_cuda = says_cuda || has(words.cuda_token);
    static const RE2 kHeading(R"((?i)\W*CUDA (?:runtime |driver )?error\W*)");
    if (has(words.cuda_word) && RE2::FullMatch(text, kHeading)) headed = clues.lines;
    const auto known = [&] { return clues.hits.size() + clues.others.size(); };
    const std::size_t hits = clues.hits.size();
    const std::size_t before = known();
    failures(text);
    const std::vector<std::string> parts = known() == before ? wrapped(text) : std::vector<std::string>();
    for (const std::string& part : parts) {
      patterns.match(part, found);
      if (known() == before) failures(part);
      signs(clues.hits.size() != hits);
    }
    if (!parts.empty()) patterns.match(text, found);
    signs(clues.hits.size() != hits);
  }

  // What the line tells of how the program went on, where it tells of no failure of CUDA's.
  void signs(bool failing) {
    Course& course = clues.course;
    if (has(Sign::on_cpu) && course.on_cpu.size() < kMaxHits) course.on_cpu.push_back(clues.lines);
    if (has(Sign::goes_on) && !failing && course.goes_on.size() < kMaxHits)
      course.goes_on.push_back(clues.lines);
    if (has(Sign::thrown) || has(Sign::dies)) {
      course.last_error = clues.lines;
      course.last_error_quote = cut(shown).text;
    }
    if (failing) return;
    if (has(Sign::works)) {
      course.last_works = clues.lines;
      course.last_works_quote = cut(shown).text;
    }
    if (has(Sign::finished)) {
      course.last_finished = clues.lines;
      course.last_finished_quote = cut(shown).text;
    }
    if (!has(Sign::dies) || facts.traceback().empty()) return;
    // The last one is what ended the program.
    if (course.deaths.size() >= kMaxOthers) course.deaths.pop_back();
    course.deaths.push_back({clues.lines, cut(shown).text, facts.traceback()});
  }
};

LogParser::LogParser(bool about_cuda) : state_(std::make_unique<State>()) { state_->says_cuda = about_cuda; }
LogParser::~LogParser() = default;

void LogParser::line(std::string_view bytes) {
  State& state = *state_;
  ++state.clues.lines;
  state.clues.bytes += bytes.size() + 1;
  if (bytes.size() > kMaxLogLine) {
    ++state.clues.cut_lines;
    bytes = bytes.substr(0, kMaxLogLine);
  }
  state.shown = plain_line(bytes);
  std::string text = without_bold(state.shown);
  state.drop_service(text);
  if (const std::string_view part = after_nvrm(text); part.empty()) {
    state.kernel_message.clear();
  } else {
    constexpr std::size_t kLongest = 2000;
    if (state.kernel_message.size() > kLongest) state.kernel_message.clear();
    state.kernel_message += (state.kernel_message.empty() ? "NVRM: " : " ") + std::string(part);
    text = state.kernel_message;
  }
  state.read(text);
}

LogFacts LogParser::take() {
  LogFacts& clues = state_->clues;
  if (!clues.devices.empty() || clues.driver.known())
    for (const char* each : {"no-nvidia", "rocm", "amd-gpu"}) clues.shows.erase(each);
  // "It runs on Windows", and failed where paths begin with a slash.
  if (clues.has("windows-said") && !clues.has("posix")) clues.shows.insert("windows");
  if (state_->lacks_so) clues.shows.erase("windows");
  // "Built without CUDA", of a program that lists what it has for CUDA or has started it.
  std::erase_if(clues.others, [&](const OtherFailure& other) {
    const std::string_view unless = other.row->unless;
    if (unless.starts_with('!')) return !clues.shows.contains(unless.substr(1));
    return !unless.empty() && clues.shows.contains(unless);
  });
  // "Minimum compute capability: 6.1" refuses a GPU only where one below it is there.
  std::erase_if(clues.hits, [&](const LogMatch& hit) {
    const auto least = known_cc(group(hit, "min_any"));
    return hit.id == "refuses_line" && std::ranges::none_of(clues.devices, [&](const DeviceMention& each) {
             return least && each.cc < *least;
           });
  });
  // PyTorch for ROCm says CUDA where it means HIP: without one of NVIDIA's GPUs, no error is CUDA's.
  if ((clues.rocm && clues.devices.empty()) || clues.shows.contains("amd-gpu")) clues.hits.clear();
  if (!state_->says_cuda && clues.packages.empty())
    std::erase_if(clues.hits, [](const LogMatch& hit) { return hit.needs_cuda; });
  const auto is_vague = [](const LogMatch& hit) { return hit.vague; };
  if (!clues.others.empty() || !std::all_of(clues.hits.begin(), clues.hits.end(), is_vague))
    std::erase_if(clues.hits, is_vague);
  // PyTorch alone says it like that, and need not be named anywhere.
  const bool by_torch = std::any_of(clues.hits.begin(), clues.hits.end(), [](const LogMatch& hit) {
    return hit.quote.find("RuntimeError: CUDA error: ") != std::string::npos;
  });
  if (by_torch && clues.packages.empty() && !clues.env.contains("TORCH_CUDA_ARCH_LIST"))
    clues.packages.push_back({"torch", "torch", {}, {}, clues.lines});
  return std::move(clues);
}

}  // namespace kshim::input
