// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/redact.h"

#include <algorithm>
#include <iterator>

#include "redact_text.h"

namespace kshim::report {
namespace {

enum class Body : std::uint8_t { alnum, upper, hex, word, mixed, base64, any };
struct Start {
  Word text;
  Body body;
  std::uint8_t least;
};

constexpr Word kSecretWords[] = {
#define KSHIM_SECRET_WORD(word) word,
#include "redaction.def"
#undef KSHIM_SECRET_WORD
};
constexpr Word kSecretParts[] = {
#define KSHIM_SECRET_PART(part) part,
#include "redaction.def"
#undef KSHIM_SECRET_PART
};
constexpr Word kCountedParts[] = {
#define KSHIM_COUNTED_PART(part) part,
#include "redaction.def"
#undef KSHIM_COUNTED_PART
};
constexpr Word kPlaceParts[] = {
#define KSHIM_PLACE_PART(part) part,
#include "redaction.def"
#undef KSHIM_PLACE_PART
};
constexpr Start kStarts[] = {
#define KSHIM_SECRET_START(text, body, least) {text, Body::body, least},
#include "redaction.def"
#undef KSHIM_SECRET_START
};
bool equals_ignoring_case(Text text, Text lower) noexcept {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (to_lower(text[i]) != lower[i]) return false;
  return true;
}

bool belongs_to(Body body, char c) noexcept {
  switch (body) {
    case Body::alnum:
      return is_alnum(c);
    case Body::upper:
      return is_upper(c) || is_digit(c);
    case Body::hex:
      return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
    case Body::word:
    case Body::mixed:
      return is_alnum(c) || c == '_' || c == '-';
    case Body::base64:
      return is_alnum(c) || is_one_of(c, "+/=._~-%");
    case Body::any:
      return !is_blank(c) && !is_quote(c);
  }
  return false;
}

/// The meaning of each character, and the rows of kStarts that begin with it: most positions of a text take
/// one table access, most words two.
struct Index {
  static constexpr std::size_t kRows = std::size(kStarts);
  static_assert(kRows < 256);
  bool is_word[256] = {};          ///< a word may begin with it
  bool is_other[256] = {};         ///< what stands there may tell of a secret
  std::uint64_t second[256] = {};  ///< of the rows with this first character, the second ones, modulo 64
  std::uint8_t begin[257] = {};    ///< into `rows`
  std::uint8_t rows[kRows] = {};
  constexpr Index() {
    std::size_t count = 0;
    for (unsigned c = 0; c < 256; ++c) {
      begin[c] = static_cast<std::uint8_t>(count);
      for (std::size_t row = 0; row < kRows; ++row) {
        if (static_cast<unsigned char>(kStarts[row].text.text[0]) != c) continue;
        rows[count++] = static_cast<std::uint8_t>(row);
        second[c] |= std::uint64_t{1} << (static_cast<unsigned char>(kStarts[row].text.text[1]) & 63U);
      }
    }
    begin[256] = static_cast<std::uint8_t>(count);
    for (unsigned c = '0'; c <= '9'; ++c) is_word[c] = true;
    for (unsigned c = 'a'; c <= 'z'; ++c) is_word[c] = is_word[c - 32] = true;
    for (const char c : {'-', ':', '=', '%', '>', ' ', '\t'}) is_other[static_cast<unsigned char>(c)] = true;
  }
};
constexpr Index kIndex;

bool has_body(Text body, const Start& start) noexcept {
  if (body.size() < start.least) return false;
  bool digit = false;
  bool letter = false;
  for (std::size_t i = 0; i < start.least; ++i) {
    if (!belongs_to(start.body, body[i])) return false;
    digit = digit || is_digit(body[i]);
    letter = letter || is_letter(body[i]);
  }
  return start.body != Body::mixed || (digit && letter);
}

/// A secret begins at the start of a word; %3D before it ends in a letter.
bool is_word_start(Text text, std::size_t at) noexcept {
  return at == 0 || !is_alnum(text[at - 1]) || (at >= 3 && text[at - 3] == '%');
}

std::size_t run_of(Text text, std::size_t at, Body body, std::size_t most = Text::npos) noexcept {
  std::size_t end = at;
  while (end < text.size() && end - at < most && belongs_to(body, text[end])) ++end;
  return end - at;
}

/// The length of a secret at `at` that has no fixed prefix; 0 if there is none. The character that is tested
/// first is rare.
std::size_t odd_shape(Text text, std::size_t at) noexcept {
  const std::size_t left = text.size() - at;
  // Azure: three characters, then 8Q~ and 31 or more.
  if (left > 36 && text[at + 5] == '~' && starts_at(text, at + 3, "8Q~")) {
    const std::size_t rest = run_of(text, at + 6, Body::base64);
    if (rest >= 30) return 6 + rest;
  }
  // Terraform: fourteen characters, then .atlasv1.
  if (left > 23 && text[at + 14] == '.' && starts_at(text, at + 14, ".atlasv1."))
    return 14 + run_of(text, at + 14, Body::base64);
  // Mailchimp: 32 hexadecimal digits, then the data center.
  if (left > 35 && text[at + 32] == '-' && starts_at(text, at + 32, "-us") &&
      run_of(text, at, Body::hex, 33) == 32)
    return run_of(text, at, Body::word);
  // Telegram: a number, a colon, 35 characters.
  if (left > 44 && is_digit(text[at])) {
    std::size_t digits = 0;
    while (digits < 11 && is_digit(text[at + digits])) ++digits;
    const std::size_t rest =
        starts_at(text, at + digits, ":AA") ? run_of(text, at + digits + 1, Body::word) : 0;
    if (digits >= 8 && digits <= 10 && rest >= 35) return digits + 1 + rest;
  }
  return 0;
}

/// Of a word that begins at `at`.
std::size_t shape_at(Text text, std::size_t at) noexcept {
  const auto first = static_cast<unsigned char>(text[at]);
  const auto second = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
  if ((kIndex.second[first] >> (second & 63U) & 1U) != 0) {
    for (std::size_t i = kIndex.begin[first]; i < kIndex.begin[first + 1U]; ++i) {
      const Start& start = kStarts[kIndex.rows[i]];
      if (!starts_at(text, at, start.text.view())) continue;
      const std::size_t body = at + start.text.size;
      if (!has_body(part_of(text, body), start)) continue;
      std::size_t end = body + run_of(text, body, start.body);
      // Characters that follow may belong to it; a slash ends it, as in a path.
      if (start.body != Body::any)
        while (end < text.size() && text[end] != '/' && belongs_to(Body::base64, text[end])) ++end;
      return end - at;
    }
  }
  return odd_shape(text, at);
}

/// Where the next secret begins and ends.
struct Span {
  std::size_t from = 0, to = 0;
  explicit operator bool() const noexcept { return to > from; }
};

class Finder {
 public:
  Finder(Text text, std::size_t at) noexcept : text_(text), at_(at) {}

  /// The secret that the text at `at` announces; the secret may follow it.
  Span find() const noexcept {
    const char c = text_[at_];
    if (c == '-')
      if (const Span found = pem()) return found;
    if (c == ':')
      if (const Span found = credentials()) return found;
    if (c == '=' || c == ':' || c == '%') return named_value();
    if (c == '>') return element();
    return c == ' ' || c == '\t' ? value_after_blank() : Span();
  }

 private:
  std::size_t find_any(Text set, std::size_t from) const noexcept {
    while (from < text_.size() && !is_one_of(text_[from], set)) ++from;
    return from;
  }

  Span pem() const noexcept {
    constexpr Text kBegin = "-----BEGIN ";
    if (!starts_at(text_, at_, kBegin)) return {};
    const Text head = part_of(text_, at_, 80);
    if (head.find("PRIVATE KEY") == Text::npos && head.find("Static key") == Text::npos) return {};
    const std::size_t start = at_ + kBegin.size();
    return {start, std::min(text_.find("-----END ", start), text_.size())};
  }

  /// scheme://user:password@host, and user:password@host alone: the password is hidden.
  Span credentials() const noexcept {
    if (starts_at(text_, at_, "://")) {
      const std::size_t start = at_ + 3;
      const std::size_t end = find_any("/?# \t\n'\"", start);
      const std::size_t at = part_of(text_, start, end - start).rfind('@');
      return at == Text::npos ? Span() : Span{start, start + at};
    }
    if (at_ == 0 || !is_name(text_[at_ - 1])) return {};
    const std::size_t end = find_any("@/: \t\n'\"<>()[]{}", at_ + 1);
    return end < text_.size() && text_[end] == '@' ? Span{at_ + 1, end} : Span();
  }

  /// The run of name characters that ends before `end`, past blanks, quotes and backslashes.
  Text name_before(std::size_t end) const noexcept {
    while (end != 0 && (is_one_of(text_[end - 1], " \t\\") || is_quote(text_[end - 1]))) --end;
    std::size_t start = end;
    while (start != 0 && is_name(text_[start - 1])) --start;
    return part_of(text_, start, end - start);
  }

  /// name=value, name: value, "name": "value", name%3Dvalue.
  Span named_value() const noexcept {
    const char c = text_[at_];
    const std::size_t width = c == '%' ? escaped_width() : 1;
    if (width == 0) return {};
    // A::b is a scope, https:// is a scheme.
    if (c == ':' &&
        (starts_at(text_, at_, "::") || starts_at(text_, at_, "://") || (at_ != 0 && text_[at_ - 1] == ':')))
      return {};
    const Text name = name_before(at_);
    if (!names_secret(name)) return {};
    const std::size_t separator = at_ + width;
    if (c == ':')
      if (const Span found = block_below(separator)) return found;
    std::size_t start = separator;
    while (start < text_.size() && is_one_of(text_[start], "=:> \t\\")) ++start;
    if (start + 1 < text_.size() && text_[start] == '[' && is_quote(text_[start + 1])) ++start;
    if (start == text_.size()) return {};
    if (is_quote(text_[start])) return {start + 1, end_of_quoted(start)};
    if (is_header(name)) {
      const auto before = static_cast<std::size_t>(name.data() - text_.data());
      const bool quoted = before != 0 && is_quote(text_[before - 1]);
      return {start, std::min(quoted ? text_.find(text_[before - 1], start) : text_.find('\n', start),
                              text_.size())};
    }
    if (c == ':' && start != separator) return {start, find_any("\n\"'", start)};
    return {start, find_any("&; \t\n\"'", start)};
  }
  /// %3D, %3A; escaped once more, %253D; else 0.
  std::size_t escaped_width() const noexcept {
    const std::size_t width = starts_at(text_, at_, "%25") ? 5 : 3;
    const std::size_t digit = at_ + width - 2;
    return digit + 1 < text_.size() && text_[digit] == '3' && is_one_of(text_[digit + 1], "DdAa") ? width : 0;
  }
  /// YAML: what is indented below `name:` or `name: |`.
  Span block_below(std::size_t separator) const noexcept {
    std::size_t start = separator;
    while (start < text_.size() && is_one_of(text_[start], " |>-+\r")) ++start;
    if (start + 1 >= text_.size() || text_[start] != '\n' || !is_one_of(text_[start + 1], " \t")) return {};
    const std::size_t from = find_other_than_blank(start + 1);
    std::size_t end = start;
    while (end + 1 < text_.size() && is_one_of(text_[end + 1], " \t"))
      end = std::min(text_.find('\n', end + 1), text_.size());
    return {from, end};
  }
  /// <password>value</password>
  Span element() const noexcept {
    const Text name = name_before(at_);
    const std::size_t before = at_ - name.size();
    if (before == 0 || text_[before - 1] != '<' || !names_secret(name)) return {};
    return {at_ + 1, find_any("<\n", at_ + 1)};
  }
  /// Where the quotes that open at `open` close: with a backslash before them, if the opening ones have one.
  std::size_t end_of_quoted(std::size_t open) const noexcept {
    const auto has_backslash = [this](std::size_t at) { return at != 0 && text_[at - 1] == '\\'; };
    std::size_t end = text_.find(text_[open], open + 1);
    while (end != Text::npos && !has_backslash(open) && has_backslash(end))
      end = text_.find(text_[open], end + 1);
    return std::min(end, text_.size());
  }
  /// A header's value has blanks, quotes and semicolons in it.
  static bool is_header(Text name) noexcept {
    constexpr Word kHeaders[] = {"authorization", "cookie"};
    for (const Word& header : kHeaders)
      if (name.size() >= header.size &&
          equals_ignoring_case(part_of(name, name.size() - header.size), header.view()))
        return true;
    return false;
  }

  /// --password X, Bearer X, -u user:X, and the line of a .netrc.
  Span value_after_blank() const noexcept {
    if (at_ == 0 || !is_name(text_[at_ - 1])) return {};
    std::size_t start = find_other_than_blank(at_);
    if (start == text_.size() || text_[start] == '-') return {};
    const Text name = name_before(at_);
    const bool user = is_one_of(name, kCredentialOptions);
    const bool whole = (name.starts_with('-') && names_secret(name)) ||
                       equals_ignoring_case(name, "bearer") ||
                       (name == "password" && text_.find("login ") != Text::npos) || is_spoken(name, start);
    if (!whole && !user) return {};
    const bool quoted = is_quote(text_[start]);
    const std::size_t end =
        quoted ? std::min(text_.find(text_[start], start + 1), text_.size()) : find_any(" \t\n\"'", start);
    if (quoted) ++start;
    if (!user) return {start, end};
    const std::size_t colon = find_any(":", start);
    return colon < end ? Span{colon + 1, end} : Span();
  }
  /// "password hunter2": in a sentence what follows is another word, which has no digit.
  bool is_spoken(Text name, std::size_t start) const noexcept {
    constexpr Word kSpoken[] = {"password", "passwd", "passphrase", "secret", "token"};
    constexpr Word kCommon[] = {"login", "basic"};
    std::size_t least = 0;
    for (const Word& word : kSpoken) least = equals_ignoring_case(name, word.view()) ? 8 : least;
    for (const Word& word : kCommon) least = equals_ignoring_case(name, word.view()) ? 20 : least;
    if (least == 0) return false;
    bool digit = false;
    bool letter = false;
    const std::size_t end = find_any(" \t\n\"'", start);
    for (std::size_t i = start; i < end; ++i) {
      if (is_one_of(text_[i], "<>(){}[]:,/.")) return false;
      digit = digit || is_digit(text_[i]);
      letter = letter || is_letter(text_[i]);
    }
    return digit && letter && end - start >= least;
  }
  std::size_t find_other_than_blank(std::size_t from) const noexcept {
    while (from < text_.size() && (text_[from] == ' ' || text_[from] == '\t')) ++from;
    return from;
  }

  Text text_;
  std::size_t at_;
};

}  // namespace

bool names_secret(Text name) noexcept {
  constexpr std::size_t kMax = 128;
  if (name.empty() || name == "PWD" || name == "OLDPWD") return false;
  if (name.starts_with("-D")) name.remove_prefix(2);  // of a compiler
  char plain[kMax];
  char part[kMax];
  std::size_t size = 0;
  std::size_t part_size = 0;
  bool secret_part = false;
  bool counted = false;
  bool place = false;
  const auto end_part = [&] {
    const Text text(part, part_size);
    secret_part = secret_part || is_one_of(text, kSecretParts);
    counted = counted || is_one_of(text, kCountedParts);
    place = place || is_one_of(text, kPlaceParts);
    part_size = 0;
  };
  for (std::size_t i = 0; i < name.size() && size < kMax; ++i) {
    const char c = name[i];
    const bool capital = is_upper(c) && i != 0 && is_lower(name[i - 1]);
    if (!is_alnum(c) || capital) end_part();
    if (!is_alnum(c)) continue;
    plain[size++] = to_lower(c);
    part[part_size++] = to_lower(c);
  }
  end_part();
  if (place) return false;
  const Text all(plain, size);
  for (const Word& word : kSecretWords)
    if (all.find(word.view()) != Text::npos) return true;
  if (counted) return false;
  const std::size_t token = all.find("token");
  return secret_part || (token != Text::npos && !starts_at(all, token, "tokeniz"));
}

namespace {

bool ends_name(Text text, std::size_t at) noexcept { return at >= text.size() || !is_name(text[at]); }

/// A path begins at `at`: nothing is before it, or what no path has, or an option's letter (-I/home/a).
bool is_path_start(Text text, std::size_t at) noexcept {
  if (at == 0 || (!is_name(text[at - 1]) && text[at - 1] != '/')) return true;
  return at >= 2 && text[at - 2] == '-' && (at == 2 || !is_name(text[at - 3]));
}

/// How many bytes of a home folder stand at `at`, where there is a slash.
std::size_t home_at(Text text, std::size_t at, const Person& person) noexcept {
  std::size_t found = 0;
  const Text home = person.home;
  const bool start = is_path_start(text, at);
  const bool deep = home.rfind('/') != 0;  // /root could as well be the end of another folder
  if (!home.empty() && starts_at(text, at, home) && ends_name(text, at + home.size()) && (deep || start))
    found = home.size();
  if (!start) return found;
  constexpr Text kRoot = "/root";
  if (starts_at(text, at, kRoot) && ends_name(text, at + kRoot.size())) found = std::max(found, kRoot.size());
  constexpr Word kFolders[] = {"/home/", "/Users/", "/users/"};
  for (const Word& folder : kFolders) {
    if (!starts_at(text, at, folder.view())) continue;
    std::size_t end = at + folder.size;
    while (end < text.size() && !is_one_of(text[end], "/: \t\n\"'")) ++end;
    if (end > at + folder.size) found = std::max(found, end - at);
  }
  return found;
}

/// The user's name as a component of a path, or at the end of one (/tmp/torchinductor_alice), or as a whole
/// value: an account, a namespace. Not below site-packages, where it is a package's name.
bool is_name_at(Text text, std::size_t at, Text name) noexcept {
  if (name.size() >= 2 && text == name) return true;
  if (name.size() < 2 || at == 0 || !is_one_of(text[at - 1], "/_-") || !starts_at(text, at, name))
    return false;
  const Text before = part_of(text, 0, at);
  return ends_name(text, at + name.size()) && before.find('/') != Text::npos &&
         before.find("-packages/") == Text::npos;
}

}  // namespace

bool RedactedPieces::next(Text& piece) noexcept {
  const std::size_t start = at_;
  if (hidden_to_ != 0) {
    at_ = hidden_to_;
    hidden_to_ = 0;
    piece = mask_;
    return true;
  }
  for (; at_ < text_.size(); ++at_) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    Span secret;
    mask_ = kHidden;
    if (kIndex.is_word[c]) {
      if (is_word_start(text_, at_)) secret = {at_, at_ + shape_at(text_, at_)};
      if (person_ != nullptr && !secret && is_name_at(text_, at_, person_->name))
        secret = {at_, at_ + person_->name.size()};
    } else if (kIndex.is_other[c]) {
      secret = Finder(text_, at_).find();
    } else if (c == '/' && person_ != nullptr) {
      secret = {at_, at_ + home_at(text_, at_, *person_)};
      mask_ = "~";
    }
    if (!secret) continue;
    at_ = secret.from;
    hidden_to_ = secret.to;
    if (secret.from == start) return next(piece);
    break;
  }
  piece = part_of(text_, start, at_ - start);
  return !piece.empty();
}

Redacted redact(Text text, std::span<char> out) noexcept {
  RedactedPieces pieces(text);
  Writer writer(out);
  for (Text piece; pieces.next(piece);) writer.put(piece);
  return writer.done();
}

}  // namespace kshim::report
