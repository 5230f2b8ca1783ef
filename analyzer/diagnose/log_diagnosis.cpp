// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/log_diagnosis.h"

#include <re2/re2.h>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/rules.h"
#include "kshim/image/compute_capability.h"

namespace kshim::diagnose {
using core::Cause;
using input::DeviceMention;
using input::ImageList;
using input::LogFacts;
using input::LogMatch;

namespace {

// Below, a line by itself decides nothing, and the next one that does may speak.
constexpr double kDecides = 0.35;
// The confidence if a message and the other facts in the log contradict each other.
constexpr double kContradicted = 0.5;
constexpr double kStrong = 0.7;
constexpr std::string_view kOfTheGpu = "ptx_feature";  // a message that is of the build or of the GPU
// Up to here a cause is a guess, which an earlier line may be better at.
constexpr double kUnsure = 0.55;

Facts facts_of(const LogFacts& clues, const std::vector<int>& codes, const DeviceMention* device,
               const ImageList* list) {
  Facts facts;
  facts.call.codes = codes;
  facts.driver.cuda = clues.driver;
  facts.driver.switches = data::switches_in(clues.env);
  if (device != nullptr) facts.gpu.cc = device->cc;
  if (list != nullptr) {
    for (const image::Candidate& image : list->images) {
      ImageFact fact;
      fact.candidate = image;
      facts.images.list.push_back(fact);
    }
    facts.images.scope = ImageScope::file;
  }
  return facts;
}

bool serves(const Facts& facts) {
  return facts.gpu.cc && !facts.images.list.empty() &&
         select(facts.images.list, facts, facts.driver.switches).choice != image::Choice::none;
}

// PyTorch's builds end their list with the PTX of their oldest GPU ("compute_37"), which is of a few of its
// libraries alone.
bool serves_in_full(const Facts& facts) {
  if (!serves(facts)) return false;
  const auto is_old_ptx = [](const ImageFact& one) {
    return one.candidate.kind == image::ImageKind::ptx &&
           one.candidate.arch.cc < image::ComputeCapability{5, 0};
  };
  Facts rest = facts;
  std::erase_if(rest.images.list, is_old_ptx);
  return serves(rest);
}

double number_of(const std::string& text) { return text.empty() ? 0 : std::strtod(text.c_str(), nullptr); }

// "sm75", "7.5" and "7, 5" alike.
double cc_number(std::string text) {
  std::erase(text, ' ');
  std::replace(text.begin(), text.end(), ',', '.');
  const double number = number_of(text);
  return text.find('.') == std::string::npos && number >= 10 ? number / 10 : number;
}

double cc_number(image::ComputeCapability cc) { return cc.major + cc.minor / 10.0; }

// The toolkit that the log names builds for what was refused: the compiler that refused is another one. LLVM
// is of no toolkit, and Triton has a ptxas of its own.
std::optional<std::string> another_compiler(const LogFacts& clues, const LogMatch& hit) {
  if (hit.who == "LLVM" || clues.has("triton-jit")) return std::nullopt;
  if (hit.cause != Cause::nvrtc_arch_unsupported || !clues.toolkit.known()) return std::nullopt;
  const auto asked = image::parse_arch(group(hit, "asked"));
  const data::ToolkitRow* toolkit = data::toolkit_at_most(clues.toolkit);
  if (!asked || toolkit == nullptr || !builds_for(*toolkit, *asked)) return std::nullopt;
  return fmt::format(
      "{}; CUDA {}, which the log names, builds for {}: the compiler that refused is of another CUDA",
      hit.tells, name(clues.toolkit), sm_name(*asked));
}

// No driver is too old for what was made with an older CUDA.
bool is_new_enough(const LogFacts& clues, const Facts& facts) {
  return facts.driver.cuda.known() && clues.toolkit.known() && !(facts.driver.cuda < clues.toolkit);
}
std::string another_libcuda(const LogFacts& clues, const Facts& facts) {
  return fmt::format(
      "the message says that the driver is too old, but the driver supports CUDA {} and the program needs "
      "only "
      "CUDA {}: another libcuda was loaded (a stub, one of the image's own), or none",
      name(facts.driver.cuda), name(clues.toolkit));
}

// "found version 10010": the message names the driver that it asked, and that is the one that is there. The
// CUDA of the log is not the program's, then.
bool names_driver(const LogMatch& hit, const Facts& facts) {
  const unsigned found = core::first_number<unsigned>(group(hit, "hascuda")).value_or(0);
  const image::Version& cuda = facts.driver.cuda;
  return found != 0 && found / 1000 == cuda.major && found % 1000 / 10 == cuda.minor;
}

// A message whose own words are refuted by the facts beside it.
CauseCandidate judge_words(const LogFacts& clues, const LogMatch& hit, const Facts& facts,
                           std::string& harmless) {
  CauseCandidate said{hit.cause, hit.confidence, hit.tells};
  // Without a GPU in the log, one that is not there is as likely.
  if (hit.id == "tf_cudart" && clues.devices.empty() && !clues.driver.known() && clues.kernel_module.empty())
    said.cause = Cause::no_device;
  if (hit.cause == Cause::driver_too_old && facts.call.has(35) && is_new_enough(clues, facts) &&
      !names_driver(hit, facts)) {
    said.cause = Cause::driver_mismatch;
    said.confidence = kContradicted;
    said.because = another_libcuda(clues, facts);
  }
  if (hit.cause == Cause::driver_too_old && facts.call.has(35) && shows_no_driver(clues))
    said.confidence = 0.3;  // what is too old would be there
  // "Minimum and Maximum cuda capability ... (8.0) - (12.0)" is no rule: code for 12.0 runs on 12.1. What is
  // judged is the list where there is one.
  const bool by_torch = hit.id == "torch_not_compatible";
  if (by_torch && serves_in_full(facts)) {
    harmless =
        fmt::format("the warning does not apply: the listed architectures include code that runs on {}",
                    name(*facts.gpu.cc));
    return {Cause::unknown, 0, {}};
  }
  // Old releases looked for the exact architecture only: without their list, nobody knows.
  if (by_torch && facts.images.list.empty()) said.confidence = kContradicted;
  if (hit.id == "ggml_never" && facts.gpu.cc &&
      cc_number(*facts.gpu.cc) > number_of(group(hit, "max100")) / 100) {
    return {
        Cause::unknown, kDecides,
        fmt::format(
            "the check asks for an architecture of {} or below, and the GPU is {}: the check is wrong, or "
            "asks for another GPU",
            number_of(group(hit, "max100")) / 100, name(*facts.gpu.cc))};
  }
  // An instruction that the list of a build is too old for, or this GPU.
  if (hit.id == kOfTheGpu && facts.gpu.cc)
    if (const auto needs = image::parse_arch(group(hit, "needs")); needs && *facts.gpu.cc < needs->cc)
      return {Cause::library_refuses, 0.7,
              fmt::format("{}, and the GPU is {}", hit.tells, name(*facts.gpu.cc))};
  const double min = cc_number(group(hit, "min_any"));
  if (facts.gpu.cc && min > 0 && cc_number(*facts.gpu.cc) >= min) {
    return {Cause::no_image_for_arch, kContradicted,
            fmt::format(
                "the check rejects an architecture below {:.1f}, and the GPU is {}: what it rejects is an "
                "entry of "
                "the list of architectures that the build was given (TORCH_CUDA_ARCH_LIST, often preset by a "
                "container's image)",
                min, name(*facts.gpu.cc))};
  }
  if (const auto another = another_compiler(clues, hit)) {
    said.confidence = kContradicted;
    said.because = *another;
  }
  // A check that lets newer GPUs pass and rejects this one was written before it.
  if (hit.id == "flash_ampere" && facts.gpu.cc && facts.gpu.cc->major >= 9)
    said.because = fmt::format(
        "{}: the GPU is newer ({}), and the copy of FlashAttention in the package is older than the GPU",
        hit.tells, name(*facts.gpu.cc));
  return said;
}

const CauseCandidate* strongest(const std::vector<CauseCandidate>& suspects) {
  const CauseCandidate* best = nullptr;
  for (const CauseCandidate& suspect : suspects) {
    if (best == nullptr || suspect.confidence > best->confidence) best = &suspect;
  }
  return best;
}

// A code that stands for several causes, and nothing beside it that tells which: naming one would be a guess.
bool is_ambiguous(const Facts& facts) {
  return (facts.images.list.empty() || !facts.gpu.cc) && !facts.call.codes.empty() &&
         code_has(facts.call.codes.front(), code_trait::ambiguous);
}

// The file that failed has code for the GPU, and the driver found none: the list is not that of what was
// loaded.
bool is_contradicted(const Facts& facts, const ImageList* list) {
  constexpr int kNoImage = 209;
  return list != nullptr && !list->by_itself && facts.call.has(kNoImage) && serves(facts);
}

// Nothing has failed yet. NVIDIA promises no other GPU's cubin for a Jetson, and some of its own generation
// run all the same.
bool may_run_on_tegra(const Facts& facts) {
  return facts.call.codes.empty() && facts.gpu.cc && image::is_tegra(*facts.gpu.cc) &&
         std::ranges::any_of(facts.images.list, [&](const ImageFact& image) {
           const image::Arch& arch = image.candidate.arch;
           return arch.suffix == image::Suffix::none && arch.cc.major == facts.gpu.cc->major &&
                  arch.cc.minor <= facts.gpu.cc->minor;
         });
}

CauseCandidate by_rules(const LogFacts& clues, const Facts& facts, const ImageList* list) {
  Diagnosis diagnosis = diagnosis_of(facts);
  // A call that counts or opens GPUs loads no image: what it lacks is a function of the driver's.
  if (facts.call.stage == "init" && is_image_cause(diagnosis.cause))
    return {
        Cause::driver_mismatch, 0.6,
        fmt::format("the call that failed with {} looks for GPUs and loads no kernel: the libcuda that was "
                    "found is not the one that the runtime expects",
                    facts.call.codes.front())};
  if (is_ambiguous(facts)) {
    return {Cause::unknown, 0.3,
            fmt::format("{} has several possible causes, and the log does not show which one",
                        facts.call.codes.front())};
  }
  constexpr int kNoCompiler = 221;
  if (facts.call.has(kNoCompiler) && clues.toolkit.known() && facts.driver.cuda < clues.toolkit &&
      facts.driver.cuda.known()) {
    return {diagnosis.cause, kContradicted,
            fmt::format("{}; what it would have to compile is of CUDA {}, though, and the driver for CUDA "
                        "{}: it may be too old for it",
                        diagnosis.match.because, name(clues.toolkit), name(facts.driver.cuda))};
  }
  if (diagnosis.cause == Cause::driver_too_old && is_new_enough(clues, facts))
    return {facts.call.has(35) ? Cause::no_device : Cause::unknown, kContradicted - 0.01,
            another_libcuda(clues, facts)};
  // A list of the build's flags: what was built with older ones is not built again by itself.
  if (list != nullptr && list->by_itself && diagnosis.cause == Cause::kernel_missing_from_image &&
      facts.call.has(98) &&
      select(facts.images.list, facts, facts.driver.switches).choice == image::Choice::jit) {
    return {Cause::no_image_for_arch, 0.45,
            fmt::format("the listed flags would serve {} by PTX; objects of an earlier build, or "
                        "another library, need not be built with them",
                        name(*facts.gpu.cc))};
  }
  if (is_contradicted(facts, list) && diagnosis.cause == Cause::no_image_for_arch) {
    return {Cause::unknown, 0.3,
            fmt::format("The listed file has code for {}, but the driver found none: the program loaded "
                        "another file or an older copy",
                        name(*facts.gpu.cc))};
  }
  return {diagnosis.cause, diagnosis.match.confidence, diagnosis.match.because};
}

// The line names the call that failed, and the call looks for GPUs.
bool enumerates(const LogMatch* hit) {
  static const RE2 kCall(
      R"(\bexpr=cudaGetDeviceCount\b|\b(?:cudaGetDeviceCount|cuInit|cuDeviceGetCount|cudaDriverGetVersion)\([^)]*\)? *(?:failed|returned|:|->))");
  return RE2::PartialMatch(hit->quote, kCall);
}

// One line, with every GPU and list of images that it may be about: what is most certain.
Judgment judge_line(const LogFacts& clues, const std::vector<const LogMatch*>& line) {
  // Several errors in one line: the first is the one that the others follow from.
  std::vector<int> codes;
  const LogMatch* coded = nullptr;
  for (const LogMatch* hit : line) {
    if (hit->code != 0 && (coded == nullptr || hit->column < coded->column)) coded = hit;
  }
  if (coded != nullptr) codes.push_back(coded->code);
  std::vector<const DeviceMention*> devices = suspected_devices(clues, line.front()->line);
  if (devices.empty()) devices.push_back(nullptr);
  std::vector<const ImageList*> lists;
  for (const ImageList& list : clues.lists) lists.push_back(&list);
  if (lists.empty()) lists.push_back(nullptr);

  Judgment best;
  bool first = true;
  for (const DeviceMention* device : devices) {
    for (const ImageList* list : lists) {
      Facts facts = facts_of(clues, codes, device, list);
      if (std::ranges::any_of(line, enumerates)) facts.call.stage = "init";
      std::vector<CauseCandidate> suspects;
      std::string harmless;
      if (!codes.empty() || (list != nullptr && device != nullptr))
        suspects.push_back(by_rules(clues, facts, list));
      bool bare = false;  // CUDA's own words: the first are enough
      for (const LogMatch* hit : line) {
        if (!hit->id.empty()) {
          suspects.push_back(judge_words(clues, *hit, facts, harmless));
        } else if (std::exchange(bare, true)) {
          continue;
        }
        std::ranges::move(candidates_from_context(clues, *hit, facts), std::back_inserter(suspects));
      }
      const CauseCandidate* winner = strongest(suspects);
      if (winner == nullptr) continue;
      CauseCandidate suspect = *winner;
      if (may_run_on_tegra(facts)) suspect.confidence = std::min(suspect.confidence, kContradicted);
      // Two strong voices of different kinds in one line: neither is sure.
      for (const CauseCandidate& other : suspects) {
        if (other.cause != suspect.cause && other.confidence >= kStrong && suspect.confidence >= kStrong &&
            !(is_image_cause(other.cause) && is_image_cause(suspect.cause)))
          suspect.confidence = std::min(suspect.confidence, kContradicted);
      }
      if (first || suspect.confidence > best.suspect.confidence) {
        best.suspect = std::move(suspect);
        best.facts = facts;
        best.device = device;
        best.list = list;
        best.harmless = harmless;
        first = false;
      }
    }
  }
  best.hit = coded != nullptr ? coded : line.front();
  return best;
}

// No line reports a failure, but the listed code would not run on the GPU.
std::optional<Judgment> judge_without_failure(const LogFacts& clues) {
  constexpr double kUnseen = 0.6;
  for (const DeviceMention& device : clues.devices) {
    if (auto outdated = library_without(clues, device.cc)) {
      Judgment out;
      out.suspect = std::move(*outdated);
      out.suspect.confidence = std::min(out.suspect.confidence, kUnseen);
      out.facts = facts_of(clues, {}, &device, nullptr);
      out.device = &device;
      return out;
    }
    for (const ImageList& list : clues.lists) {
      const Facts facts = facts_of(clues, {}, &device, &list);
      const Diagnosis diagnosis = diagnosis_of(facts);
      if (list.by_itself || !is_image_cause(diagnosis.cause)) continue;
      Judgment out;
      out.suspect = {diagnosis.cause, std::min(diagnosis.match.confidence, kUnseen),
                     "No line reports a failure. " + diagnosis.match.because};
      out.facts = facts;
      out.device = &device;
      out.list = &list;
      return out;
    }
  }
  return std::nullopt;
}

// What is listed as built in proves more than the words of a refusal.
bool is_proved(const Judgment& judged) {
  return is_image_cause(judged.suspect.cause) && judged.hit->hint && !judged.facts.images.list.empty();
}

bool is_refusal_of_gpu(Cause cause) {
  return cause == Cause::library_refuses || cause == Cause::cudnn_mismatch;
}

// An earlier warning about the same problem confirms the diagnosis.
void join_hint(const Judgment& hint, Judgment& decided) {
  const bool same = hint.suspect.cause == decided.suspect.cause ||
                    (is_image_cause(hint.suspect.cause) && is_image_cause(decided.suspect.cause));
  const std::string said = fmt::format("line {}: {}", hint.hit->line, hint.hit->quote);
  // A framework without code for the GPU: its libraries refuse it for the same reason, and others in their
  // place would not help.
  if (is_proved(hint) && is_refusal_of_gpu(decided.suspect.cause)) {
    const LogMatch* failed = decided.hit;
    std::vector<CauseCandidate> others = {{decided.suspect.cause, decided.suspect.confidence,
                                           fmt::format("line {}: {}", failed->line, failed->quote)}};
    decided = hint;
    decided.went_on.clear();
    decided.suspect.confidence = std::max(decided.suspect.confidence, hint.hit->confidence);
    decided.others = std::move(others);
    return;
  }
  if (same && hint.facts.images.list.empty()) {
    // What the warning foretold has come true.
    decided.suspect.confidence = std::max(decided.suspect.confidence, hint.hit->confidence);
  }
  // What the program compiles itself has no kernel, or is refused: the compiler said before that it does not
  // know the GPU.
  if (hint.suspect.cause == Cause::nvrtc_arch_unsupported && is_image_cause(decided.suspect.cause) &&
      decided.suspect.confidence <= kUnsure) {
    const std::string failed = fmt::format("line {}: {}", decided.hit->line, decided.hit->quote);
    std::vector<CauseCandidate> others = {{decided.suspect.cause, decided.suspect.confidence, failed}};
    decided = hint;
    decided.went_on.clear();
    decided.others = std::move(others);
    return;
  }
  if (!same || hint.suspect.confidence <= decided.suspect.confidence) {
    decided.earlier = {hint.suspect.cause, hint.suspect.confidence, said};
    return;
  }
  decided.earlier = {decided.suspect.cause, decided.suspect.confidence, said};
  decided.suspect = hint.suspect;
}

// Code that was compiled from PTX, and a launch that the driver then knows nothing about: the image that
// would have been right is not there.
void blame_compiling(const Judgment& hint, Judgment& failed) {
  const std::vector<int>& codes = failed.facts.call.codes;
  if (codes.empty() || !code_has(codes.front(), code_trait::ambiguous)) return;
  failed.suspect = {
      Cause::no_image_for_arch, kContradicted,
      fmt::format("The program said before that it has no code for this GPU and that its PTX is "
                  "compiled instead (line {}); a later \"kernel not found\", whatever its error code, "
                  "usually means that the PTX is missing or did not compile",
                  hint.hit->line)};
  failed.device = hint.device;
  failed.facts.gpu.cc = hint.facts.gpu.cc;
}

// "Requires compute capability >= 7.0" as a program or its documentation says it: a check that stopped the
// program would be an exception, or name the GPU.
bool is_requirement(const LogFacts& clues, const Judgment& decided) {
  const LogMatch* message = message_behind(clues, decided);
  const bool names_gpu =
      message != nullptr && (!group(*message, "gpu").empty() || !group(*message, "cc").empty());
  return decided.suspect.cause == Cause::library_refuses && !decided.hit->thrown && !names_gpu &&
         decided.suspect.confidence < kStrong;
}

// A file that is missing ends the program, whatever it complained of before; TensorFlow does without
// TensorRT.
bool is_aside_of(const Judgment& decided, const Judgment& missing) {
  if (missing.suspect.cause != Cause::library_not_found || group(*missing.hit, "lib").empty()) return false;
  const bool optional = group(*decided.hit, "lib").starts_with("libnvinfer") &&
                        !group(*missing.hit, "lib").starts_with("libnvinfer");
  return optional || (missing.hit->thrown && !decided.hit->thrown && decided.facts.call.codes.empty() &&
                      decided.suspect.cause != Cause::library_not_found);
}

// "Unknown error" says nothing where a later message has a reason.
bool is_bare(const Judgment& judged) {
  return judged.suspect.cause == Cause::unknown && !judged.facts.call.codes.empty() &&
         judged.facts.call.codes.front() == 999;
}

bool is_unsure(const Judgment& judged) { return judged.suspect.confidence <= kUnsure; }

// What a program says of the GPU on its way, where it need not be what ended it.
bool may_be_aside(const Judgment& judged) {
  return !judged.hit->thrown && judged.facts.call.codes.empty() &&
         (judged.suspect.cause == Cause::library_refuses || judged.suspect.cause == Cause::jit_tax);
}

// Whether a warning tells of the same thing that the failure, which by itself decides nothing, came from.
bool explains(const Judgment& hint, const Judgment& failed) {
  return hint.went_on.empty() && hint.suspect.cause != Cause::jit_tax &&
         (is_image_cause(hint.suspect.cause) || failed.hit->hint || failed.hit->brief);
}

class LineRanker {
 public:
  LineRanker(const LogFacts& clues, bool is_brief) : clues_(clues), brief_(is_brief) {}

  Judgment decide() {
    for (const auto& line : lines()) take(judge_line(clues_, line), line);
    Judgment out;
    if (decided_) {
      out = std::move(*decided_);
      if (hint_) join_hint(*hint_, out);
    } else if (hint_ && (!undecided_ || explains(*hint_, *undecided_) || !undecided_->went_on.empty())) {
      out = std::move(*hint_);
    } else if (undecided_) {
      out = std::move(*undecided_);
      if (hint_ && hint_->suspect.cause == Cause::jit_tax) blame_compiling(*hint_, out);
      if (hint_)
        out.earlier = {hint_->suspect.cause, hint_->suspect.confidence,
                       fmt::format("line {}: {}", hint_->hit->line, hint_->hit->quote)};
    } else if (harmless_.empty()) {
      if (auto quiet = judge_without_failure(clues_)) out = std::move(*quiet);
    }
    if (out.hit != nullptr && !out.went_on.empty()) out.death = death_after(clues_.course, *out.hit);
    if (out.hit != nullptr && may_be_aside(out) && ended_otherwise(*out.hit))
      out.suspect.confidence = std::min(out.suspect.confidence, kContradicted);
    out.harmless = harmless_;
    std::ranges::move(others_, std::back_inserter(out.others));
    return out;
  }

 private:
  using Line = std::vector<const LogMatch*>;

  bool ended_otherwise(const LogMatch& hit) const {
    const auto later = [&](const auto& each) { return each.line > hit.line; };
    return std::ranges::any_of(clues_.course.deaths, later) || std::ranges::any_of(clues_.others, later);
  }

  std::vector<Line> lines() const {
    std::vector<Line> out;
    for (const LogMatch& hit : clues_.hits) {
      if (hit.brief && !brief_) continue;
      if (out.empty() || out.back().front()->line != hit.line) out.emplace_back();
      out.back().push_back(&hit);
    }
    return out;
  }

  void take(Judgment judgment, const Line& line) {
    const bool silent = judgment.suspect.confidence < kDecides;
    if (judgment.hit != nullptr)
      judgment.went_on = survived(clues_.course, *judgment.hit, judgment.suspect.cause);
    // A wrong warning is no failure; what fails later may be one.
    if (!judgment.harmless.empty() && silent) {
      if (harmless_.empty()) harmless_ = judgment.harmless;
      return;
    }
    // A code or a message that names no cause of the contract's may be clear all the same.
    const bool unsure = judgment.suspect.cause == Cause::unknown && judgment.suspect.confidence < kStrong;
    if (silent || unsure || line.front()->brief) {
      // The words of a person are weaker than any error that was printed.
      const bool weaker = undecided_ && ((undecided_->hit->brief && !line.front()->brief) ||
                                         (!undecided_->went_on.empty() && judgment.went_on.empty()));
      if (!undecided_ || weaker) undecided_ = std::move(judgment);
      return;
    }
    const bool warning = !judgment.went_on.empty() ||
                         std::all_of(line.begin(), line.end(), [](const LogMatch* hit) { return hit->hint; });
    if (warning && decided_ && is_proved(judgment) && decided_->suspect.cause == Cause::library_refuses &&
        !decided_->hit->thrown && decided_->suspect.confidence < judgment.suspect.confidence) {
      hint_ = std::exchange(*decided_, std::move(judgment));
    } else if (warning) {
      // "No GPU" is what a missing library looks like to a program, and what the driver's own line explains.
      const bool says_why = hint_ && hint_->suspect.cause == Cause::no_device &&
                            judgment.suspect.confidence >= kStrong &&
                            (judgment.suspect.cause != Cause::no_device || is_unsure(*hint_));
      if ((!hint_ || says_why) && !decided_) hint_ = std::move(judgment);
    } else if (!decided_) {
      decided_ = std::move(judgment);
    } else if (is_bare(*decided_) && judgment.suspect.cause != Cause::unknown &&
               judgment.suspect.confidence >= kStrong) {
      hint_ = std::exchange(*decided_, std::move(judgment));
    } else if (is_aside_of(*decided_, judgment) ||
               (is_requirement(clues_, *decided_) &&
                (judgment.hit->thrown || !judgment.facts.call.codes.empty()))) {
      hint_ = std::exchange(*decided_, std::move(judgment));
    } else if (judgment.suspect.cause == decided_->suspect.cause && decided_->suspect.confidence <= 0.6 &&
               judgment.suspect.confidence >= kStrong &&
               judgment.facts.call.codes == decided_->facts.call.codes) {
      decided_ = std::move(judgment);  // the same, and more of it
    } else if (judgment.suspect.cause != decided_->suspect.cause &&
               seen_.insert(judgment.suspect.cause).second) {
      judgment.suspect.because = fmt::format("line {}: {}", judgment.hit->line, judgment.hit->quote);
      others_.push_back(std::move(judgment.suspect));
    }
  }

  const LogFacts& clues_;
  bool brief_;
  std::optional<Judgment> decided_;
  std::optional<Judgment> hint_;
  std::optional<Judgment> undecided_;
  std::string harmless_;
  std::vector<CauseCandidate> others_;
  std::set<Cause> seen_;
};

}  // namespace

Judgment judge(const LogFacts& clues, bool is_brief) { return LineRanker(clues, is_brief).decide(); }

const LogMatch* message_behind(const LogFacts& clues, const Judgment& judgment) {
  if (judgment.hit == nullptr) return nullptr;
  const LogMatch* out = nullptr;
  for (const LogMatch& hit : clues.hits) {
    // What the GPU beside it made a cause of.
    const bool judged = (hit.id == kOfTheGpu && judgment.suspect.cause == Cause::library_refuses) ||
                        (hit.id == "ggml_never" && judgment.suspect.cause == Cause::unknown);
    const bool same =
        hit.line == judgment.hit->line && !hit.id.empty() && (judged || hit.cause == judgment.suspect.cause);
    if (same && (out == nullptr || hit.confidence > out->confidence)) out = &hit;
  }
  return out;
}

}  // namespace kshim::diagnose
