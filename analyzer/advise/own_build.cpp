// SPDX-License-Identifier: Apache-2.0
// The build command that a log shows, with the architectures of a plan in place of its own.
#include <re2/re2.h>

#include "analyzer/advise/fixes.h"

namespace kshim::advise {
using core::contains;
using data::ArchList;
using data::ToolkitRow;
using diagnose::Facts;
using say::BuildPlan;

namespace {

/// "80;86", "8.0 8.6+PTX", "sm_80", "-gencode arch=compute_80,code=sm_80": the plan in the notation that
/// stands there; empty where it is no list.
std::string list_like(const std::string& there, const BuildPlan& plan) {
  static const RE2 kFlags(R"(^-{1,2}(?:gencode|arch|generate-code|gpu-architecture)\b.*)");
  static const RE2 kList(
      R"((?:(?:sm_|compute_)?(?:\d{2,3}[af]?(?:-real|-virtual)?|\d{1,2}\.\d[af]?(?:\+PTX)?)(?:[;, ]+|$))+)");
  if (RE2::FullMatch(there, kFlags)) return arch_list(plan, ArchList::gencode);
  if (!RE2::FullMatch(there, kList)) return {};
  const bool dotted = contains(there, '.');
  std::string out = arch_list(plan, dotted && contains(there, '+') ? ArchList::torch
                                    : dotted                       ? ArchList::dots
                                    : contains(there, '-')         ? ArchList::cmake
                                                                   : ArchList::plain);
  const std::size_t separator = there.find_first_of(";, ");
  if (separator != there.npos) std::ranges::replace(out, ';', there[separator]);
  if (contains(there, "sm_")) RE2::GlobalReplace(&out, R"((\d{2,3}))", "sm_\\1");
  return out;
}

bool names_archs(const std::string& variable) {
  static const RE2 kVariable(
      R"((?i).*(?:ARCH|\bSMS?\b|CAPABILIT|COMPUTE_CAP|GENCODE|CUDA_CC|NVCC_?FLAGS|CUDA_?FLAGS).*)");
  return RE2::FullMatch(variable, kVariable);
}

/// One command of a line: its words are read, and written again as every shell takes them.
class OwnCommand {
 public:
  OwnCommand(const BuildPlan& plan, std::string toolkit) : plan_(plan), toolkit_(std::move(toolkit)) {}
  bool changed() const { return changed_; }

  /// Empty where the line holds what is not to be printed again.
  std::string corrected(std::string_view line) {
    static const RE2 kEnd(R"(\||;|&|\d?>.*|#.*|\\)");
    for (std::string word : say::words_of(line)) {
      if (RE2::FullMatch(word, kEnd)) break;
      if (word == "&&") {
        if (!close()) break;
        continue;
      }
      const bool ends = word.ends_with(';') && word.size() > 1;
      if (ends) word.pop_back();
      take(word == "-j$(nproc)" ? "-j" : word);
      if (ends) break;
    }
    close();
    return safe_ ? core::join(commands_, " && ") : std::string();
  }

 private:
  bool close() {
    constexpr std::array<std::string_view, 11> kPrograms = {
        "cmake", "nvcc", "make", "ninja", "pip", "pip3", "python", "python3", "cargo", "cd", "./configure"};
    const bool known = core::contains(kPrograms, program_);
    if (known) commands_.push_back(core::join(words_, " "));
    words_.clear();
    program_.clear();
    return known;
  }

  void take(const std::string& raw) {
    static const RE2 kFlag(R"(-{1,2}(gencode|generate-code|arch|gpu-architecture)(?:[= ]?(.*))?)");
    const std::string word = say::unquoted(raw);
    safe_ = safe_ && word.find_first_of("$`~*?<>{}") == word.npos;
    std::string flag;
    std::string value;
    if (!pending_.empty()) return take_flag(std::exchange(pending_, {}), word);
    if (program_ == "nvcc" && RE2::FullMatch(word, kFlag, &flag, &value)) {
      if (value.empty()) pending_ = flag;
      return value.empty() ? void() : take_flag(flag, value);
    }
    const std::size_t mark = word.find('=');
    const std::string name = word.substr(0, mark);
    if (mark != word.npos && names_archs(name))
      if (std::string list = list_like(word.substr(mark + 1), plan_); !list.empty()) {
        changed_ = changed_ || list != word.substr(mark + 1);
        words_.push_back(fmt::format("{}=\"{}\"", name, list));
        return;
      }
    const bool assigns = program_.empty() && mark != word.npos && mark != 0 && word.front() != '-';
    if (!assigns && program_.empty()) begin(word);
    words_.push_back(assigns ? fmt::format("{}={}", name, core::shell_quote(word.substr(mark + 1)))
                             : core::shell_quote(word));
    safe_ = safe_ && !contains(words_.back(), core::kNoShellWord);
    if (!assigns) after(word);
  }

  // "-arch=sm_80", and each of several -gencode: the first has all.
  void take_flag(const std::string& flag, const std::string& value) {
    const bool one = flag.ends_with("e") && flag.starts_with("gpu") ? true : flag == "arch";
    std::string list = one && plan_.archs.size() == 1 ? "-arch=" + sm_name(plan_.archs.front().arch)
                                                      : arch_list(plan_, ArchList::gencode);
    changed_ = changed_ || !contains(list, value);
    if (!std::exchange(has_flags_, true)) words_.push_back(std::move(list));
  }

  /// The program: another toolkit goes before it.
  void begin(const std::string& word) {
    program_ = core::basename_of(word) == "nvcc" ? "nvcc" : word;
    if (toolkit_.empty() || word == "cmake" || word == "cd") return;
    words_.push_back(word.starts_with("p") ? fmt::format("CUDA_HOME={}", toolkit_)
                                           : fmt::format("PATH={}/bin:\"$PATH\"", toolkit_));
  }

  /// What was built before is not up to date.
  void after(const std::string& word) {
    if (word == "make") words_.emplace_back("-B");
    if (word == "cmake" && !toolkit_.empty() && commands_.empty())
      words_.push_back(fmt::format("--fresh -DCMAKE_CUDA_COMPILER={}/bin/nvcc", toolkit_));
    if (word == "install" && program_.starts_with("p"))
      words_.emplace_back("--force-reinstall --no-deps --no-cache-dir");
  }

  const BuildPlan& plan_;
  std::string toolkit_;
  std::vector<std::string> commands_;
  std::vector<std::string> words_;
  std::string program_;
  std::string pending_;  ///< a flag whose value is the next word
  bool has_flags_ = false;
  bool changed_ = false;
  bool safe_ = true;
};

}  // namespace

void use_own_command(const Facts& at, FixDrafts& fixes) {
  if (at.package.build_command.empty() || !at.gpu.cc || fixes.empty()) return;
  FixDraft& first = fixes.front();
  // Of what others publish, and with another toolkit, the build is another one.
  if ((first.kind != core::FixKind::rebuild && first.id != "rebuild") || first.id == "build-with-other-cuda")
    return;
  const ToolkitRow* at_hand = data::toolkit_at_most(at.images.toolkit);
  const bool here = at_hand == nullptr || builds_for(*at_hand, {*at.gpu.cc, image::Suffix::none});
  const ToolkitRow* toolkit =
      here && at_hand != nullptr ? at_hand : recommend_toolkit(*at.gpu.cc, std::nullopt, at.driver.cuda, {});
  std::vector<image::Candidate> others;
  for (const image::ComputeCapability cc : at.gpu.others)
    others.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  auto plan = toolkit == nullptr ? std::nullopt : plan_build(others, *at.gpu.cc, *toolkit, at.driver.cuda);
  if (!plan) return;
  OwnCommand own(*plan, here ? "" : fmt::format("/usr/local/cuda-{}", name(toolkit->version)));
  const std::string text = own.corrected(at.package.build_command);
  if (text.empty() || !own.changed()) return;
  first.steps = {say::command_of(text, {}, nullptr, say::Holes::keep)};
  first.caveat.clear();
  if (first.id != "rebuild") return;
  first.title = fmt::format("Run your build command again, for {}{}", sm_name(*at.gpu.cc),
                            here ? "" : fmt::format(", with CUDA {}", name(toolkit->version)));
  // Which build system it is shows.
  fixes.erase(
      std::remove_if(fixes.begin() + 1, fixes.end(), [](const FixDraft& fix) { return fix.id == "rebuild"; }),
      fixes.end());
}

}  // namespace kshim::advise
