// SPDX-License-Identifier: Apache-2.0
// Strings for people: foreign text made harmless, names demangled and shortened, lists joined, lines filled.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"
#include "kshim/image/arch.h"

namespace kshim::image {

/// "12.8", "8.6": for sentences. Found by its argument.
inline std::string name(Version version) { return std::string(to_name(version).view()); }
inline std::string name(ComputeCapability cc) { return std::string(to_name(cc).view()); }
/// "sm_90": the code that a GPU wants.
inline std::string sm_name(ComputeCapability cc) {
  return std::string(to_name(ImageKind::cubin, {cc, Suffix::none}).view());
}

}  // namespace kshim::image

namespace kshim::analysis {

/// Text from a report as it may be printed on a UTF-8 terminal: control characters (escape sequences among
/// them), invisible characters, those that turn the direction of writing, noncharacters, and bytes that are
/// no UTF-8 each become `?`.
std::string harmless(std::string_view text);
/// Bytes that are no UTF-8 become U+FFFD; all else stays, controls too.
std::string utf8_of(std::string_view text);
/// harmless(), with every other character beyond ASCII a `?` too: for terminals that do not speak UTF-8.
std::string ascii(std::string_view text);
/// `_Z5scalePfi` to `scale(float*, int)`. Anything but a mangled name stays as it is, and so does one that
/// would become more than 32 times as long and 16 KiB.
std::string demangle(std::string_view symbol);
/// `ns::scale<float>(float*)` to `scale`: without return type, scopes, arguments of templates and parameters.
std::string base_name(std::string_view demangled);
/// A demangled name as a person wants to see it: without a leading return type, default template arguments
/// and anonymous namespaces, long template argument lists folded to `<...>` so that it fits `width`.
std::string shorten(std::string_view demangled, std::size_t width);

/// "a:b" at any of `separators`; empty parts are kept.
std::vector<std::string> split(std::string_view text, std::string_view separators);
/// Without the blanks and line ends around it.
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& items, std::string_view separator);
/// "a", "a and b", "a, b and c".
std::string enumerate(const std::vector<std::string>& items);
/// "0a1b": two digits a byte.
std::string hex(Bytes bytes);
/// "1 kernel", "2 kernels".
std::string counted(std::uint64_t count, std::string_view noun);
/// "2.3 GB": decimal, as disks and downloads are measured.
std::string size_text(std::uint64_t bytes);
/// The values of the words that stand in a template in braces: one pass from left to right, so that a value
/// which happens to hold such a word is not expanded again. Braces around anything else stay.
using TemplateWords = std::vector<std::pair<std::string_view, std::string>>;
std::string expand(std::string_view text, const TemplateWords& words);
/// Whether the template asks for the word.
bool asks_for(std::string_view text, std::string_view word);
/// With a capital letter, unless it begins with a name, and a full stop.
std::string as_sentence(std::string text);
/// Columns a UTF-8 text takes (combining marks are not known).
std::size_t columns(std::string_view text);
/// Breaks at blanks so that no line is wider than `width`, unless a single word is. Lines after the first
/// start with `indent` blanks.
std::string fill(std::string_view text, std::size_t width, std::size_t indent);
/// What shell_quote() gives for a word that it cannot quote: no command that holds it may be printed
/// (advise/commands.h).
constexpr char kNoShellWord = '\x01';
/// The word as bash, zsh, fish and PowerShell all read it back; kNoShellWord where there is no such spelling.
std::string shell_quote(std::string_view word);
std::string_view basename_of(std::string_view path);

/// A line of text that GitHub's runner, which reads the logs of jobs, takes for no command: it looks for `::`
/// behind blanks at the begin, and for `##[` anywhere. Such a line gets a blank where it hurts least.
std::string no_command(std::string line);

/// The entry of `known` that `word` was meant to be: one that differs little, or goes on from it; empty where
/// none or several do.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);
/// Levenshtein's distance, given up beyond `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

// Text written so that a reader of markup or of URIs takes it for text.

/// As HTML and XML 1.0 have it, in content and in quoted attributes. Characters that XML forbids are not its
/// concern: harmless() takes them out. What GitHub's runner would take for a command (no_command() in text.h)
/// is written so that it does not.
std::string escape_markup(std::string_view text);

/// RFC 3986: an absolute path as file:///a%20b, a relative one as a relative reference.
std::string file_uri(std::string_view path);

// How a piece of text is meant. A terminal shows it by color, Markdown and HTML by markup.

/// code: names of files, kernels, calls. number: a cell of digits.
enum class Tone : std::uint8_t { plain, strong, dim, error, warning, good, code, number };

}  // namespace kshim::analysis
