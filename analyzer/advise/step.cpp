// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/step.h"

#include "analyzer/data/knowledge.h"
#include "analyzer/data/wheels.h"
#include "analyzer/diagnose/program.h"

namespace kshim::advise {
namespace {

constexpr std::array<std::string_view, 3> kSeparators = {" && ", "; ", ";"};

/// The end of a quoted text, of $(...) or of the character at `at`.
std::size_t end_of(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '\'' || c == '"') return std::min(text.find(c, at + 1), text.size() - 1) + 1;
  if (c != '$' || at + 1 == text.size() || text[at + 1] != '(') return at + 1;
  std::size_t depth = 0;
  for (std::size_t end = at + 1; end < text.size(); ++end) {
    if (text[end] == '(') ++depth;
    if (text[end] == ')' && --depth == 0) return end + 1;
  }
  return text.size();
}

struct Piece {
  std::string_view before;
  std::string_view text;
};

std::vector<Piece> pieces_of(std::string_view pattern) {
  std::vector<Piece> out;
  std::string_view before;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    const auto found = std::ranges::find_if(
        kSeparators, [&](std::string_view separator) { return pattern.substr(at).starts_with(separator); });
    if (found == kSeparators.end()) {
      at = end_of(pattern, at);
      continue;
    }
    out.push_back({before, pattern.substr(begin, at - begin)});
    before = pattern.substr(at, found->size());
    begin = at += found->size();
  }
  out.push_back({before, pattern.substr(begin)});
  return out;
}

/// NAME=value, or {home?} and {path?}, which are such.
std::size_t assignments_in(std::string_view text) {
  std::size_t out = 0;
  for (;;) {
    std::string_view rest = text.substr(out);
    for (const std::string_view word : {"{home?}", "{path?}"})
      if (rest.starts_with(word)) {
        out += word.size();
        rest.remove_prefix(word.size());
      }
    const std::size_t name = rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (name == 0 || name == rest.npos || rest[name] != '=') return out;
    std::size_t at = name + 1;
    while (at < rest.size() && rest[at] != ' ') at = end_of(rest, at);
    if (at == rest.size()) return out;
    out += at + 1;
  }
}

struct Verb {
  std::string_view written;
  Step::Kind kind;
  bool of_conda = false;
};
// Longer ones first.
constexpr std::array<Verb, 6> kVerbs = {{{"python -m pip install ", Step::Kind::install},
                                         {"python -m pip uninstall ", Step::Kind::remove},
                                         {"pip install ", Step::Kind::install},
                                         {"pip uninstall ", Step::Kind::remove},
                                         {"conda install ", Step::Kind::install, true},
                                         {"conda update ", Step::Kind::install, true}}};

const Verb* verb_at(std::string_view text) {
  const auto found =
      std::ranges::find_if(kVerbs, [&](const Verb& verb) { return text.starts_with(verb.written); });
  return found == kVerbs.end() ? nullptr : &*found;
}

bool holds_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return contains(text, part); });
}

// What the shells or the programs of Linux alone have.
unsigned needs_of(std::string_view pattern, std::string_view program) {
  constexpr std::array<std::string_view, 16> kPrograms = {
      "sudo", "ls",      "ldconfig", "grep",  "cat",   "rm",   "systemctl", "modprobe",
      "find", "mokutil", "dkms",     "dmesg", "lsmod", "make", "head",      "tail"};
  unsigned out = need::none;
  const auto add = [&out](bool has, unsigned need) { out |= has ? need : 0U; };
  add(holds_any(pattern, {"sudo ", "export ", "unset ", "rm -", "/usr/", "/dev/", "/proc/", "ldconfig",
                          "env -u", "env{unset}", "| grep", "$("}),
      need::system);
  add(contains(kPrograms, program) || holds_any(pattern, {" | ", "$(", "/usr/", "/opt/", "/proc/", "/dev/",
                                                          "~/", ".sh", "LD_LIBRARY_PATH", "$CUDA"}),
      need::linux);
  add(holds_any(pattern, {"list}", "ARCH_LIST=", "ARCHITECTURES=\"", "compute_", "=sm_"}), need::gpu);
  add(contains(pattern, "apt-get install"), need::manager);
  add(program == "export" || program == "unset" || program.starts_with("env") || contains(pattern, " && "),
      need::posix);
  return out;
}

/// The words of arguments without their quotes; a word that was filled in stays one where it was quoted.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    std::string word;
    while (at < text.size() && text[at] != ' ') {
      const std::size_t end = end_of(text, at);
      const bool quoted = text[at] == '\'' || text[at] == '"';
      word += quoted ? text.substr(at + 1, end - at - 2) : text.substr(at, end - at);
      at = end;
    }
    out.push_back(std::move(word));
  }
  return out;
}

void take_packages(Step& step) {
  for (std::string& word : words_of(step.text)) {
    if (word.starts_with('-')) continue;
    const std::size_t name =
        std::min(word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
                 word.size());
    if (name < word.size() && (word[name] == ':' || word[name] == '/')) {
      step.sources.push_back(std::move(word));
      continue;
    }
    Requirement& package = step.packages.emplace_back();
    package.name = word.substr(0, name);
    std::string_view rest = std::string_view(word).substr(name);
    if (rest.starts_with('[')) {
      const std::size_t end = std::min(rest.find(']'), rest.size() - 1);
      package.extras = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    }
    package.release = rest;
  }
}

}  // namespace

Command command_of(std::string_view pattern, const TemplateWords& words, const std::string* failed,
                   Holes holes) {
  Command out;
  std::string_view program = failed != nullptr ? *failed : std::string_view();
  if (holes == Holes::drop && expand_filled(pattern, words).empty()) return out;
  const auto filled = [&](std::string_view text) {
    const std::size_t at = program.empty() ? text.npos : text.find(diagnose::kProgramWord);
    if (at == text.npos) return expand(text, words);
    std::string result = expand(text.substr(0, at), words).append(program);
    program = {};  // once
    return result + expand(text.substr(at + diagnose::kProgramWord.size()), words);
  };
  out.names_program = failed != nullptr && contains(pattern, diagnose::kProgramWord);
  for (auto [before, text] : pieces_of(pattern)) {
    const std::size_t assigned = assignments_in(text);
    Step step;
    step.before = std::string(before) + filled(text.substr(0, assigned));
    if (step.before.size() > before.size() && out.empty()) out.needs |= need::posix;
    text.remove_prefix(assigned);
    // {pip} is `pip install` with options.
    std::string pip;
    if (text.starts_with("{pip}")) {
      pip = expand("{pip}", words);
      text.remove_prefix(std::string_view("{pip}").size());
    }
    step.program = text.substr(0, text.find(' '));
    step.asks_for_gpu = contains(text, "--query-gpu=name,compute_cap");
    if (out.empty()) out.needs |= needs_of(pattern, step.program);
    if (const Verb* verb = verb_at(pip.empty() ? text : pip)) {
      step.kind = verb->kind;
      step.verb = verb->written;
      step.text = pip.empty() ? filled(text.substr(verb->written.size()))
                              : pip.substr(verb->written.size()) + filled(text);
      out.needs |= verb->kind == Step::Kind::install ? need::manager : need::none;
      if (verb->kind == Step::Kind::install) take_packages(step);
    } else {
      step.kind = step.program == "export"  ? Step::Kind::set
                  : step.program == "unset" ? Step::Kind::unset
                  : text.starts_with("docker run") || text.starts_with("docker compose")
                      ? Step::Kind::container
                      : Step::Kind::run;
      step.text = pip + filled(text);
    }
    out.steps.push_back(std::move(step));
  }
  return out;
}

namespace {

std::string verb_for(const Step& step, const PythonEnvironment& python) {
  const std::string_view written = step.verb;
  const std::string_view verb = written.substr(written.rfind(' ', written.size() - 2) + 1);  // "install "
  const bool conda = written.starts_with("conda");
  if (!python.known() || (conda && (!python.conda || step.text.starts_with("-p "))))
    return std::string(written);
  if (conda) return fmt::format("conda {}--prefix {} ", verb, shell_quote(python.prefix));
  if (!python.has_pip) return fmt::format("uv pip {}--python {} ", verb, shell_quote(python.prefix));
  return fmt::format("{} -m pip {}", shell_quote(python.interpreter), verb);
}

}  // namespace

std::string text_of(const Command& command, const Shell& shell) {
  std::string out;
  for (const Step& step : command.steps)
    out += step.before + (step.verb.empty() ? std::string() : verb_for(step, shell.python)) + step.text;
  if (!shell.windows) return out;
  if (!contains(out, '"')) std::ranges::replace(out, '\'', '"');
  const Step& first = command.steps.front();
  if (shell.interpreter.empty() || !first.before.empty()) return out;
  if (first.verb.starts_with("pip ")) return shell.interpreter + " -m " + out;
  return first.program == "python" ? shell.interpreter + out.substr(first.program.size()) : out;
}

std::string text_of(const Command& command) {
  static const PythonEnvironment unknown;
  return text_of(command, {unknown});
}

namespace {

image::Version cuda_in(std::string_view text) {
  for (std::size_t at = text.find("cu"); at != std::string_view::npos; at = text.find("cu", at + 2)) {
    std::string_view rest = text.substr(at + 2);
    if (rest.starts_with("da")) rest.remove_prefix(2);
    if (rest.starts_with('-')) rest.remove_prefix(1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits < 2 || digits > 3) continue;
    const auto digit = [&](std::size_t i) { return static_cast<std::uint16_t>(rest[i] - '0'); };
    if (rest[0] != '1') return {digit(0), digit(1)};
    const std::uint16_t major = static_cast<std::uint16_t>(digit(0) * 10 + digit(1));
    if (digits == 3) return {major, digit(2)};
    const bool dotted = rest.size() > 3 && rest[2] == '.' && rest[3] >= '0' && rest[3] <= '9';
    return {major, dotted ? digit(3) : std::uint16_t{0}};
  }
  return {};
}

}  // namespace

image::Version cuda_of(const Command& command) {
  for (const Step& step : command.steps) {
    for (const Requirement& package : step.packages)
      for (const std::string& part : {package.name, package.extras})
        if (const image::Version cuda = cuda_in(part); cuda.known()) return cuda;
    for (const std::string& source : step.sources)
      if (const image::Version cuda = cuda_in(source); cuda.known()) return cuda;
  }
  return {};
}

std::string_view unpublished_in(const Command& command) {
  for (const Step& step : command.steps)
    for (const Requirement& package : step.packages)
      for (const FirstReleaseRow& row : first_releases()) {
        if (package.name != row.package) continue;
        const std::string_view release = package.release;
        if (!release.starts_with("==") && !release.starts_with("~=")) continue;
        if (!is_on_pypi(row.package, release.substr(2, release.find_first_not_of("0123456789.*", 2) - 2)))
          return row.package;
      }
  return {};
}

bool FixDraft::runs_container() const {
  return !steps.empty() && std::ranges::any_of(steps.front().steps, [](const Step& step) {
    return step.kind == Step::Kind::container;
  });
}

bool FixDraft::asks_for_gpu() const {
  return !steps.empty() && std::ranges::any_of(steps.front().steps, &Step::asks_for_gpu);
}

bool FixDraft::pins_release() const {
  return std::ranges::any_of(steps, [](const Command& command) {
    return std::ranges::any_of(command.steps, [](const Step& step) {
      return std::ranges::any_of(
          step.packages, [](const Requirement& package) { return package.release.starts_with("=="); });
    });
  });
}

bool FixDraft::needs_any(unsigned needs) const {
  return std::ranges::any_of(steps, [needs](const Command& command) { return (command.needs & needs) != 0; });
}

}  // namespace kshim::advise
