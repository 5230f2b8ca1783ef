// SPDX-License-Identifier: Apache-2.0
#include "analyzer/say/shell.h"

#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/program.h"

namespace kshim::say {
using core::contains;
using core::expand;
using core::join;
using core::shell_quote;

namespace {

constexpr std::string_view kIfDone = " && ";
constexpr std::string_view kThen = "; ";

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
  bool if_done;
  std::string_view text;
};

std::vector<Piece> pieces_of(std::string_view pattern) {
  std::vector<Piece> out;
  bool if_done = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    if (!rest.starts_with(kIfDone) && !rest.starts_with(kThen)) {
      at = end_of(pattern, at);
      continue;
    }
    out.push_back({if_done, pattern.substr(begin, at - begin)});
    if_done = rest.starts_with(kIfDone);
    begin = at += (if_done ? kIfDone : kThen).size();
  }
  out.push_back({if_done, pattern.substr(begin)});
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

/// The beginning of a step that installs or removes, as the tables write it.
struct Verb {
  std::string_view tool;
  std::string_view action;
  std::size_t size() const { return tool.size() + 1 + action.size() + 1; }
};
constexpr Verb kVerbs[] = {{"python -m pip", "install"}, {"python -m pip", "uninstall"}, {"pip", "install"},
                           {"pip", "uninstall"},         {"conda", "install"},           {"conda", "update"}};

const Verb* verb_at(std::string_view text) {
  const auto found = std::ranges::find_if(kVerbs, [&](const Verb& verb) {
    return text.starts_with(fmt::format("{} {} ", verb.tool, verb.action));
  });
  return found == std::end(kVerbs) ? nullptr : &*found;
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
  add(contains(kPrograms, program) || program.starts_with("env") ||
          holds_any(pattern, {" | ", "$(", "/usr/", "/opt/", "/proc/", "/dev/", "~/", ".sh",
                              "LD_LIBRARY_PATH", "$CUDA", "\"$"}),
      need::linux);
  add(holds_any(pattern, {"list}", "ARCH_LIST=", "ARCHITECTURES=\"", "compute_", "=sm_"}), need::gpu);
  add(contains(pattern, "apt-get install"), need::manager);
  add(holds_any(pattern, {"sudo modprobe", "sudo rmmod", "sudo dmesg", "sudo systemctl", "modinfo -F",
                          "sudo nvidia-", "sudo mount", "sudo mokutil", "sudo dkms", "sudo akmods",
                          "sudo tee /etc", "sudo ubuntu-drivers"}),
      need::host);
  return out;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && text[at] != ' ') at = end_of(text, at);
    if (at > begin) out.emplace_back(text.substr(begin, at - begin));
    ++at;
  }
  return out;
}

namespace {

std::vector<Variable> variables_of(std::string_view text) {
  std::vector<Variable> out;
  for (const std::string& word : words_of(text)) {
    const std::size_t end = word.find('=');
    out.push_back({word.substr(0, end), word.substr(std::min(end, word.size() - 1) + 1)});
  }
  return out;
}

}  // namespace

std::string unquoted(std::string_view word) {
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = end_of(word, at);
    const bool quoted = word[at] == '\'' || word[at] == '"';
    out += quoted ? word.substr(at + 1, end - at - 2) : word.substr(at, end - at);
    at = end;
  }
  return out;
}

namespace {

Install install_of(const Verb& verb, std::string_view arguments) {
  Install out{verb.tool, verb.action, words_of(arguments)};
  for (const std::string& each : out.words) {
    std::string word = unquoted(each);
    if (word.starts_with('-')) continue;
    const std::size_t name =
        std::min(word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
                 word.size());
    if (name < word.size() && (word[name] == ':' || word[name] == '/')) {
      out.indexes.push_back(std::move(word));
      continue;
    }
    Requirement& package = out.packages.emplace_back();
    package.name = word.substr(0, name);
    std::string_view rest = std::string_view(word).substr(name);
    if (rest.starts_with('[')) {
      const std::size_t end = std::min(rest.find(']'), rest.size() - 1);
      package.extras = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    }
    package.release = rest;
  }
  return out;
}

bool is_python(std::string_view program) {
  return program == "pip" || program == "python" || program == "conda";
}

/// `pattern` is that of the step, `text` what it became.
Action action_of(std::string_view pattern, std::string text) {
  if (const Verb* verb = verb_at(pattern)) {
    text.erase(0, verb->size());
    if (verb->action == "uninstall") return Remove{verb->tool, std::move(text)};
    return install_of(*verb, text);
  }
  const std::string_view program = pattern.substr(0, pattern.find(' '));
  if (program == "export") return SetEnv{variables_of(std::string_view(text).substr(program.size() + 1))};
  if (program == "unset") return Unset{words_of(std::string_view(text).substr(program.size() + 1))};
  if (pattern.starts_with("docker run") || pattern.starts_with("docker compose") || program == "kubectl")
    return Container{std::move(text)};
  return Run{std::string(program), std::move(text), contains(pattern, "--query-gpu=name,compute_cap")};
}

}  // namespace

Command command_of(std::string_view pattern, const core::TemplateWords& words, const std::string* failed,
                   Holes holes) {
  Command out;
  std::string_view program = failed != nullptr ? *failed : std::string_view();
  if (holes == Holes::drop && core::expand_filled(pattern, words).empty()) return out;
  const auto filled = [&](std::string_view text) {
    const std::size_t at = program.empty() ? text.npos : text.find(diagnose::kProgramWord);
    if (at == text.npos) return expand(text, words);
    std::string result = expand(text.substr(0, at), words).append(program);
    program = {};  // once
    return result + expand(text.substr(at + diagnose::kProgramWord.size()), words);
  };
  out.names_program = failed != nullptr && contains(pattern, diagnose::kProgramWord);
  for (auto [if_done, text] : pieces_of(pattern)) {
    const std::size_t assigned = assignments_in(text);
    Step step{if_done, variables_of(filled(text.substr(0, assigned))), {}};
    text.remove_prefix(assigned);
    // {pip} is `pip install` with options.
    constexpr std::string_view kPip = "{pip}";
    const std::string own = text.starts_with(kPip)
                                ? expand(kPip, words) + std::string(text.substr(kPip.size()))
                                : std::string(text);
    step.action = action_of(own, filled(text));
    const Run* run = std::get_if<Run>(&step.action);
    const bool installs = std::holds_alternative<Install>(step.action);
    if (out.empty()) out.needs |= needs_of(pattern, text.substr(0, text.find(' ')));
    if (installs) out.needs |= need::manager;
    if (installs || std::holds_alternative<Remove>(step.action) ||
        (run != nullptr && is_python(run->program)))
      out.needs |= need::python;
    out.steps.push_back(std::move(step));
  }
  return out;
}

namespace {

/// The steps of the build system itself.
Command steps_of(const Build& build) {
  const bool other = !build.toolkit.empty();
  const std::string nvcc = other ? build.toolkit + "/bin/nvcc" : "nvcc";
  const auto plain =
      std::ranges::find(build.plan.archs.rbegin(), build.plan.archs.rend(), image::Suffix::none,
                        [](const PlannedArch& row) { return row.arch.suffix; });
  return command_of(build.pattern.empty() ? build.recipe->command : std::string_view(build.pattern),
                    {{"pip", std::string(pip_install(build.recipe->pip))},
                     {"nvcc", nvcc},
                     {"mode", build.mode},
                     {"toolkit", other ? build.toolkit : "/usr/local/cuda"},
                     {"home", other ? fmt::format("CUDA_HOME={} ", build.toolkit) : ""},
                     {"path", other ? fmt::format("PATH={}/bin:\"$PATH\" ", build.toolkit) : ""},
                     {"compiler", other ? fmt::format(" --fresh -DCMAKE_CUDA_COMPILER={}", nvcc) : ""},
                     {"cuda", name(build.plan.toolkit->version)},
                     {"list", arch_list(build.plan, build.recipe->list)},
                     {"newest", plain == build.plan.archs.rend() ? "" : dotted(plain->arch)},
                     {"output", build.output},
                     {"build", build.folder},
                     {"package", build.package},
                     {"tag", build.tag},
                     {"source", build.source},
                     {"folder", build.checkout},
                     {"variable", build.variable},
                     {"program", build.program}},
                    nullptr, Holes::keep);
}

/// How an installer is started: "pip install", and with what says for which environment.
std::string start_of(std::string_view tool, std::string_view action, const Shell& shell) {
  const owner::PythonEnvironment& python = shell.python;
  if (shell.windows && !shell.interpreter.empty() && !python.known() && tool != "conda")
    return fmt::format("{} -m pip {}", shell.interpreter, action);
  if (!python.known() || (tool == "conda" && !python.conda)) return fmt::format("{} {}", tool, action);
  if (tool == "conda") return fmt::format("conda {} --prefix {}", action, shell_quote(python.prefix));
  if (!python.has_pip) return fmt::format("uv pip {} --python {}", action, shell_quote(python.prefix));
  return fmt::format("{} -m pip {}", shell_quote(python.interpreter), action);
}

/// cmd knows double quotes alone; PowerShell takes both.
std::string for_windows(std::string text) {
  if (!contains(text, '"')) std::ranges::replace(text, '\'', '"');
  return text;
}

struct Printer {
  const Shell& shell;

  std::string operator()(const Install& step) const {
    const bool placed = step.tool == "conda" && !step.words.empty() && step.words.front() == "-p";
    const std::string start = !step.environment.empty()
                                  ? fmt::format("uv pip install --python {}", step.environment)
                              : placed ? fmt::format("{} {}", step.tool, step.action)
                                       : start_of(step.tool, step.action, shell);
    return start + " " + join(words_of(step), " ");
  }
  /// To uv, --upgrade means everything that a package asks for, PyTorch among it.
  std::vector<std::string> words_of(const Install& step) const {
    const bool uv = !step.environment.empty() || (shell.python.known() && !shell.python.has_pip);
    std::vector<std::string> out;
    for (const std::string& word : step.words) {
      if (!uv || step.tool == "conda" || word != "--upgrade") {
        out.push_back(word);
        continue;
      }
      for (const Requirement& package : step.packages)
        out.push_back("--upgrade-package " + shell_quote(package.name));
    }
    return out;
  }
  std::string operator()(const Remove& step) const {
    return fmt::format("{} {}", start_of(step.tool, "uninstall", shell), step.words);
  }
  std::string operator()(const SetEnv& step) const {
    return shell.windows ? set(step.variables, "; ") : "export " + set(step.variables, " ");
  }
  std::string operator()(const Unset& step) const {
    return shell.windows ? "Remove-Item Env:" + join(step.names, ", Env:") : "unset " + join(step.names, " ");
  }
  std::string operator()(const Container& step) const { return by_engine(step.command); }
  std::string by_engine(std::string out) const {
    constexpr std::pair<std::string_view, std::string_view> kOfPodman[] = {
        {"docker ", "podman "}, {"--gpus all", "--device nvidia.com/gpu=all"}};
    for (const auto& [from, to] : kOfPodman)
      if (const std::size_t at = out.find(from); shell.podman && at != out.npos)
        out.replace(at, from.size(), to);
    return out;
  }
  std::string operator()(const Run& step) const {
    constexpr std::string_view kPython = "python";
    const bool own = shell.windows && !shell.interpreter.empty() && step.program == kPython;
    if (step.program == "docker") return by_engine(step.command);
    return own ? shell.interpreter + step.command.substr(kPython.size()) : step.command;
  }
  std::string operator()(const Build& step) const { return text_of(steps_of(step), shell); }
  std::string operator()(const UpdateDriver&) const { return {}; }

  /// A=1, or as PowerShell has it.
  std::string set(const std::vector<Variable>& variables, std::string_view separator) const {
    return join(core::mapped(variables,
                             [&](const Variable& each) {
                               if (!shell.windows) return fmt::format("{}={}", each.name, each.value);
                               const std::string value = unquoted(each.value);
                               const char quote = value.find_first_of("$`\"") == value.npos ? '"' : '\'';
                               return fmt::format("$env:{} = {}{}{}", each.name, quote, value, quote);
                             }),
                separator);
  }
};

}  // namespace

Command command_of(Build build) {
  const std::string_view pattern =
      build.pattern.empty() ? build.recipe->command : std::string_view(build.pattern);
  Command out{{}, steps_of(build).needs, core::asks_for(pattern, "program")};
  // It lies where Linux has it.
  if (!build.toolkit.empty() || contains(build.recipe->command, "{toolkit}"))
    out.needs |= need::system | need::linux;
  out.steps.push_back({false, {}, std::move(build)});
  return out;
}

std::string_view pip_install(data::Pip how) {
  return how == data::Pip::here
             ? "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps"
             : "pip install --no-cache-dir --force-reinstall --no-deps";
}

std::string text_of(const Command& command, const Shell& shell) {
  const Printer printer{shell};
  std::string out;
  std::size_t blocks = 0;  // PowerShell's for &&, which its older versions do not have
  const auto close = [&] {
    for (; blocks > 0; --blocks) out += " }";
  };
  for (const Step& step : command.steps) {
    if (!step.if_done) close();
    blocks += step.if_done && shell.windows ? 1 : 0;
    if (&step != &command.steps.front())
      out += !step.if_done ? kThen : shell.windows ? "; if ($?) { " : kIfDone;
    if (!step.with.empty())
      out += printer.set(step.with, shell.windows ? kThen : " ").append(shell.windows ? kThen : " ");
    std::string text = std::visit(printer, step.action);
    const bool sets =
        std::holds_alternative<SetEnv>(step.action) || std::holds_alternative<Build>(step.action);
    out += shell.windows && !sets ? for_windows(std::move(text)) : text;
  }
  close();
  return out;
}

std::string text_of(const Command& command) {
  static const owner::PythonEnvironment unknown;
  return text_of(command, {unknown});
}

std::string driver_release(std::string_view of_linux, bool windows) {
  if (!windows) return std::string(of_linux);
  const auto& rows = data::windows_drivers();
  const auto row = std::ranges::find(rows, of_linux, &data::WindowsDriverRow::of_linux);
  // Both systems count branches alike, and releases each by itself.
  return std::string(row != rows.end() ? row->of_windows : of_linux.substr(0, of_linux.find('.')));
}

std::string goal_of(const UpdateDriver& driver, bool windows) {
  if (driver.beyond)
    return driver.release.empty() ? fmt::format(" to one for a CUDA newer than {}", name(driver.cuda))
                                  : fmt::format(" to one newer than {}", driver.release);
  if (!driver.release.empty()) return fmt::format(" to {} or newer", driver_release(driver.release, windows));
  return driver.cuda.known() ? fmt::format(" to one for CUDA {} or newer", name(driver.cuda)) : std::string();
}

std::string title_of(const UpdateDriver& driver, bool windows) {
  return driver.jetpack ? "Update JetPack, which brings the driver"
                        : "Update the driver" + goal_of(driver, windows);
}

}  // namespace kshim::say
