// SPDX-License-Identifier: Apache-2.0
// Redaction of argument lists.
#include <algorithm>
#include <iterator>

#include "kshim/report/redact.h"
#include "redact_text.h"

namespace kshim::report {
namespace {

constexpr Word kHarmlessOptions[] = {
#define KSHIM_HARMLESS_OPTION(name) name,
#include "redaction.def"
#undef KSHIM_HARMLESS_OPTION
};
constexpr Word kScriptEndings[] = {
#define KSHIM_SCRIPT_ENDING(text) text,
#include "redaction.def"
#undef KSHIM_SCRIPT_ENDING
};

Redacted hidden(std::span<char> out) noexcept { return Writer(out).put(kHidden).done(); }

Text base_name(Text path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == Text::npos ? path : part_of(path, slash + 1);
}

constexpr std::size_t kMaxNameLength = 64;

bool is_option_name(Text name) noexcept {
  if (name.size() > kMaxNameLength) return false;
  return std::all_of(name.begin(), name.end(), is_name);
}

/// --nproc_per_node, -gencode: without its dashes, _ as -.
bool is_harmless(Text option) noexcept {
  while (option.starts_with('-')) option.remove_prefix(1);
  return std::any_of(std::begin(kHarmlessOptions), std::end(kHarmlessOptions), [option](const Word& name) {
    if (name.size != option.size()) return false;
    for (std::size_t i = 0; i < name.size; ++i)
      if (name.text[i] != (option[i] == '_' ? '-' : option[i])) return false;
    return true;
  });
}
/// An option, where a secret could stand: -v, --max-tokens=512, --device. A secret may begin with dashes.
bool is_plain_option(Text argument) noexcept {
  if (!argument.starts_with('-')) return false;
  if (argument.size() == 2) return true;
  const Text name = part_of(argument, 0, argument.find('='));
  return is_option_name(name) &&
         (is_harmless(name) || (name.starts_with("--") && std::all_of(name.begin(), name.end(), [](char c) {
                                  return is_lower(c) || c == '-' || c == '_';
                                })));
}
/// cuda:0, arch=compute_90,code=sm_90, bfloat16: short, and of no shape that a path or a sentence has.
bool is_harmless_value(Text value) noexcept {
  constexpr std::size_t kMax = 64;
  return value.size() <= kMax && !value.starts_with('-') &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return is_name(c) || is_one_of(c, ",:;=+[]"); });
}

}  // namespace

Redacted ArgumentRedactor::next(Text argument, std::span<char> out) noexcept {
  if (detail_ == ArgumentDetail::off) return hidden(out);
  const bool all = detail_ == ArgumentDetail::full;
  if (!first_) return all ? full(argument, out) : classify(argument, out);
  first_ = false;
  const Text program = base_name(argument);
  constexpr Word kShells[] = {"bash", "dash", "ksh", "sh", "zsh"};
  program_ = program.starts_with("python") || program.starts_with("pypy") ? Program::python
             : is_one_of(program, kShells)                                ? Program::shell
                                                                          : Program::other;
  part_ = ArgumentPart::program;
  // setproctitle() writes whole command lines here.
  const std::size_t blank = argument.find_first_of(" \t\n");
  if (all || blank == Text::npos) return redact(argument, out);
  Writer writer(out);
  RedactedPieces pieces(part_of(argument, 0, blank + 1), Content::text);
  for (Text piece; pieces.next(piece);) writer.put(piece);
  writer.put(kHidden);
  return writer.done();
}

Redacted ArgumentRedactor::full(Text argument, std::span<char> out) noexcept {
  const Expects expected = expects_;
  expects_ = Expects::anything;
  part_ = argument.starts_with('-') ? ArgumentPart::option : ArgumentPart::value;
  if (expected == Expects::secret && !is_plain_option(argument) && !is_setting(argument)) return hidden(out);
  if (expected == Expects::credentials) {
    const std::size_t colon = argument.find(':');
    if (colon != Text::npos) {
      return Writer(out).put(part_of(argument, 0, colon + 1)).put(kHidden).done();
    }
  }
  const bool whole = argument.find_first_of("=: \t\n") == Text::npos;
  if (whole && argument.starts_with('-') && announced_by(argument) != Announced::nothing)
    expects_ = Expects::secret;
  if (is_one_of(argument, kCredentialOptions)) expects_ = Expects::credentials;
  return redact(argument, out);
}

bool ArgumentRedactor::is_script(Text argument, Expects expected) const noexcept {
  if (script_seen_ || expected == Expects::secret || argument.size() > 1024) return false;
  // A command line for a shell may end as a script's name does.
  if (argument.find_first_of(" \t\n;|&$<>()'\"`=") != Text::npos) return false;
  // The first argument of an interpreter that belongs to none of its options is one, whatever its name.
  if (program_ != Program::other && expected == Expects::anything) return true;
  return std::any_of(std::begin(kScriptEndings), std::end(kScriptEndings),
                     [argument](const Word& ending) { return argument.ends_with(ending.view()); });
}

Redacted ArgumentRedactor::classify(Text argument, std::span<char> out) noexcept {
  const Expects expected = expects_;
  expects_ = Expects::anything;
  part_ = ArgumentPart::value;
  if (expected == Expects::secret && !is_plain_option(argument)) return hidden(out);
  if (argument.size() > 1 && argument.starts_with('-')) return option(argument, out);
  if (expected == Expects::module) {
    part_ = ArgumentPart::script;
    program_ = Program::other;  // a launcher may be given a script
    return is_option_name(argument) ? redact(argument, out) : hidden(out);
  }
  if (expected == Expects::harmless_value && is_harmless_value(argument)) return redact(argument, out);
  if (!is_script(argument, expected)) return hidden(out);
  script_seen_ = true;
  part_ = ArgumentPart::script;
  return redact(argument, out);
}

Redacted ArgumentRedactor::option(Text argument, std::span<char> out) noexcept {
  part_ = ArgumentPart::option;
  Writer writer(out);
  const std::size_t equals = argument.find('=');
  const Text name = part_of(argument, 0, equals);
  const bool own = program_ != Program::other && !script_seen_;  // an option of python or sh itself
  if (equals != Text::npos) {
    if (is_option_name(name) && is_harmless(name) && is_harmless_value(part_of(argument, equals + 1)))
      return redact(argument, out);
    if (argument.starts_with("--") && is_option_name(name)) {
      writer.put(name);
      writer.put("=");
    } else {
      writer.put(part_of(argument, 0, 2));
    }
    writer.put(kHidden);
    return writer.done();
  }
  if (own && program_ == Program::python && argument == "-m") {
    expects_ = Expects::module;
    part_ = ArgumentPart::script;
  } else if (own && name.size() <= 5 && !name.starts_with("--") && name.ends_with('c')) {
    script_seen_ = true;  // -c, -lc: a program follows, and its arguments
  } else if (own && (name == "-W" || name == "-X" || name == "-o" || name == "-O")) {
    expects_ = Expects::own_value;
  } else if (announced_by(name) != Announced::nothing) {
    expects_ = Expects::secret;
  } else if (is_harmless(name)) {
    expects_ = Expects::harmless_value;
  }
  const bool is_long = argument.starts_with("--");
  const bool shown = is_option_name(name) && (is_long || name.size() == 2 || is_harmless(name));
  if (shown) return redact(argument, out);
  // -pX: a value may be glued to a letter.
  if (!is_long) writer.put(part_of(argument, 0, 2));
  writer.put(kHidden);
  return writer.done();
}

}  // namespace kshim::report
