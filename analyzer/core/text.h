// SPDX-License-Identifier: Apache-2.0
// Strings for people: foreign text made harmless, names demangled and shortened, lists joined, lines filled.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/base/bytes.h"
#include "kshim/image/select.h"

namespace kshim::image {

/// "12.8", "8.6": for sentences. Found by its argument.
inline std::string name(Version version) { return std::string(to_name(version).view()); }
inline std::string name(ComputeCapability cc) { return std::string(to_name(cc).view()); }
/// "sm_90a", "compute_90", "lto_90".
inline std::string name(ImageKind kind, Arch arch) { return std::string(to_name(kind, arch).view()); }
inline std::string name(const Candidate& image) { return name(image.kind, image.arch); }
/// "sm_90": the code that a GPU wants.
inline std::string sm_name(Arch arch) { return name(ImageKind::cubin, arch); }
inline std::string sm_name(ComputeCapability cc) { return sm_name(Arch{cc, Suffix::none}); }

}  // namespace kshim::image

namespace kshim::core {

struct Decoded {
  char32_t code = 0;
  std::size_t length = 0;  ///< in bytes; 0 where the bytes are no UTF-8
};
/// The first character. Strict: no overlong forms, no surrogates, nothing cut off. A lax decoder would let an
/// escape character pass as a continuation byte.
Decoded decode(std::string_view text);
using CharacterRange = std::pair<char32_t, char32_t>;  ///< first and last
bool is_within(std::span<const CharacterRange> ranges, char32_t code);

/// Text from a report as it may be printed on a UTF-8 terminal: control characters (escape sequences among
/// them), invisible characters, those that turn the direction of writing, noncharacters, and bytes that are
/// no UTF-8 each become `?`.
std::string sanitize(std::string_view text);
/// Bytes that are no UTF-8 become U+FFFD; all else stays, controls too.
std::string utf8_of(std::string_view text);
/// sanitize(), with every other character beyond ASCII a `?` too: for terminals that do not speak UTF-8.
std::string ascii(std::string_view text);
/// `_Z5scalePfi` to `scale(float*, int)`. Anything but a mangled name stays as it is, and so does one that
/// would become more than 32 times as long and 16 KiB.
std::string demangle(std::string_view symbol);
/// `ns::scale<float>(float*)` to `scale`: without return type, scopes, arguments of templates and parameters.
std::string base_name(std::string_view demangled);
/// A demangled name as a person wants to see it: without a leading return type, default template arguments
/// and anonymous namespaces, long template argument lists folded to `<...>` so that it fits `width`.
std::string shorten(std::string_view demangled, std::size_t width);

/// Whether `part` stands anywhere in `text`.
inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline bool contains(std::string_view text, char part) { return text.find(part) != std::string_view::npos; }
/// Whether an element of the list is equal to `value`.
template <class List, class Value>
requires(!std::is_convertible_v<const List&, std::string_view>) bool contains(const List& list,
                                                                              const Value& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

// ASCII, whatever the locale is.

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_alnum(char c) { return is_digit(c) || is_letter(c); }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string to_lower(std::string_view text);

/// Takes the number that the text begins with off it; nullopt for one that the type cannot hold, or for none.
template <class Number>
std::optional<Number> take_number(std::string_view& text, int base = 10) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}
/// The number that the text begins with, whatever follows it.
template <class Number>
std::optional<Number> first_number(std::string_view text, int base = 10) {
  return take_number<Number>(text, base);
}
/// The number that the whole text is.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  const auto out = take_number<Number>(text, base);
  return text.empty() ? out : std::nullopt;
}

/// "a:b" at any of `separators`; empty parts are kept.
std::vector<std::string> split(std::string_view text, std::string_view separators);
/// Without the blanks and line ends around it.
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& items, std::string_view separator);
/// What `make`, a function or a member, makes of each item.
template <class Items, class Make>
auto mapped(const Items& items, Make&& make) {
  std::vector<std::decay_t<decltype(std::invoke(make, *std::begin(items)))>> out;
  for (const auto& item : items) out.push_back(std::invoke(make, item));
  return out;
}
/// "a", "a and b", "a, b and c".
std::string enumerate(const std::vector<std::string>& items);
/// "0a1b": two digits a byte.
std::string hex(Bytes bytes);
/// "1 kernel", "2 kernels".
std::string counted(std::uint64_t count, std::string_view noun);
/// "2.3 GB": decimal, as disks and downloads are measured.
std::string size_text(std::uint64_t bytes);
/// "50M", "1.5 GB", "300MiB", "1000000000"; nullopt for anything else.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// The values of the words that stand in a template in braces: one pass from left to right, so that a value
/// which happens to hold such a word is not expanded again. Braces around anything else stay. {word?} may be
/// empty.
using TemplateWords = std::vector<std::pair<std::string_view, std::string>>;
std::string expand(std::string_view text, const TemplateWords& words);
/// The same, or nothing where a word is empty that may not be.
std::string expand_filled(std::string_view text, const TemplateWords& words);
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
/// concern: sanitize() takes them out. What GitHub's runner would take for a command (no_command() in text.h)
/// is written so that it does not.
std::string escape_markup(std::string_view text);

/// RFC 3986: an absolute path as file:///a%20b, a relative one as a relative reference.
std::string file_uri(std::string_view path);

// How a piece of text is meant. A terminal shows it by color, Markdown and HTML by markup.

/// code: names of files, kernels, calls. number: a cell of digits.
enum class Tone : std::uint8_t { plain, strong, dim, error, warning, good, code, number };

}  // namespace kshim::core
