// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/redact.h"

#include <algorithm>
#include <iterator>

#include "redact_text.h"

namespace kshim::report {
namespace {

enum class Body : std::uint8_t { alnum, upper, hex, word, base64, any };
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

std::size_t run_of(Text text, std::size_t at, Body body, std::size_t most = Text::npos) noexcept {
  std::size_t end = at;
  while (end < text.size() && end - at < most && belongs_to(body, text[end])) ++end;
  return end - at;
}

/// What the letters and digits of a text look like. A secret is drawn at random, a name is made of words.
class Look {
 public:
  explicit Look(Text text) noexcept {
    char last = 0;
    std::size_t length = 0;
    std::size_t changes = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
      const char now = at < text.size() ? kind_of(text[at]) : 0;
      if (now == 0) {
        // `forward`, `fp16`, `2026`: one kind of character, or two, one behind the other.
        if (changes <= 1 && (length >= 3 || last == 'a') && (last != '0' || changes == 1 || length <= 4))
          in_words_ += length;
        changes_ += changes;
        length = changes = 0;
      } else {
        ++size_;
        (now == '0' ? digits_ : now == 'A' ? upper_ : lower_) += 1;
        changes += length != 0 && now != last;
        ++length;
      }
      last = now;
    }
  }
  /// At least every `n`th character is of another kind (digit, capital, small letter) than the one before.
  bool changes_every(std::size_t n) const noexcept { return changes_ * n + 1 >= size_; }
  bool is_of_words() const noexcept { return in_words_ * 2 >= size_; }
  bool has_both() const noexcept { return digits_ != 0 && upper_ + lower_ != 0; }
  bool has_all() const noexcept { return digits_ != 0 && upper_ != 0 && lower_ != 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t letters() const noexcept { return upper_ + lower_; }

 private:
  static char kind_of(char c) noexcept {
    return is_digit(c) ? '0' : is_upper(c) ? 'A' : is_lower(c) ? 'a' : '\0';
  }
  std::size_t size_ = 0, digits_ = 0, upper_ = 0, lower_ = 0, changes_ = 0, in_words_ = 0;
};

/// A value of a name such as `key` that is no word, number or shape (128x64), but a token.
bool is_token(Text value) noexcept {
  const Look look(value);
  if (look.is_of_words() || value.starts_with("_Z") || value.starts_with("0x")) return false;
  if (look.has_both()) return look.size() >= 12 && look.letters() >= 4 && look.changes_every(5);
  return look.size() >= 16 && look.letters() != 0 && look.changes_every(2);  // drawn without a digit
}
/// The same within a path or a symbol, where a hash can be part of a name: hashes have one kind of letters.
bool is_sure_token(Text text) noexcept {
  const Look look(part_of(text, 0, run_of(text, 0, Body::alnum)));
  return look.size() >= 20 && look.has_all() && look.changes_every(3);
}

bool has_body(Text text, const Start& start) noexcept {
  const std::size_t size = run_of(text, 0, start.body);
  if (size < start.least || (start.body == Body::upper && size != start.least)) return false;
  if (start.body == Body::any) return true;
  const Look look(part_of(text, 0, size));
  // Of 20 letters drawn from both cases one in 30 has no digit among them.
  const bool mixed = look.changes_every(look.has_both() ? 5 : 3);
  return mixed && !look.is_of_words();
}

/// A secret begins at the start of a word; %3D before it ends in a letter.
bool is_word_start(Text text, std::size_t at) noexcept {
  return at == 0 || !(is_alnum(text[at - 1]) || text[at - 1] == '_') || (at >= 3 && text[at - 3] == '%');
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
  if (left > 35 && text[at + 32] == '-' && starts_at(text, at + 32, "-us") && is_digit(text[at + 35]) &&
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
std::size_t shape_at(Text text, std::size_t at, Content content) noexcept {
  const auto first = static_cast<unsigned char>(text[at]);
  const auto second = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
  if ((kIndex.second[first] >> (second & 63U) & 1U) != 0) {
    for (std::size_t i = kIndex.begin[first]; i < kIndex.begin[first + 1U]; ++i) {
      const Start& start = kStarts[kIndex.rows[i]];
      if (!starts_at(text, at, start.text.view())) continue;
      const std::size_t body = at + start.text.size;
      if (!has_body(part_of(text, body), start)) continue;
      if (content == Content::identifier && (start.body == Body::any || !is_sure_token(part_of(text, body))))
        continue;
      std::size_t end = body + run_of(text, body, start.body);
      // Characters that follow may belong to it; a slash ends it, as in a path.
      if (start.body != Body::any)
        while (end < text.size() && text[end] != '/' && belongs_to(Body::base64, text[end])) ++end;
      return end - at;
    }
  }
  return content == Content::text ? odd_shape(text, at) : 0;
}

/// Where the next secret begins and ends.
struct Span {
  std::size_t from = 0, to = 0;
  explicit operator bool() const noexcept { return to > from; }
};

class Finder {
 public:
  Finder(Text text, std::size_t at, Content content) noexcept
      : text_(text), at_(at), identifier_(content == Content::identifier) {}

  /// The secret that the text at `at` announces; the secret may follow it.
  Span find() const noexcept {
    const char c = text_[at_];
    if (c == '-' && !identifier_)
      if (const Span found = pem()) return found;
    if (c == ':')
      if (const Span found = credentials()) return found;
    if (c == '=' || c == ':' || c == '%') return named_value();
    if (identifier_) return {};
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
      const bool none =
          at == Text::npos || part_of(text_, start, at) == "git";  // ssh://git@host: everybody's
      return none ? Span() : Span{start, start + at};
    }
    if (identifier_ || at_ == 0 || !is_name(text_[at_ - 1])) return {};
    const std::size_t end = find_any("@/: \t\n'\"<>()[]{}", at_ + 1);
    if (end == text_.size() || text_[end] != '@') return {};
    const Span password{at_ + 1, end};
    return is_host(end + 1) || is_token(part_of(text_, at_ + 1, end - at_ - 1)) ? password : Span();
  }
  /// host.example, 10.0.0.1, localhost, host:5432, tcp(host): not sha256:HASH, not a branch.
  bool is_host(std::size_t start) const noexcept {
    std::size_t end = start;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const Text host = part_of(text_, start, end - start);
    if (host == "localhost") return true;
    if (end + 1 < text_.size() && text_[end] == '(') return true;
    if (end + 1 < text_.size() && text_[end] == ':' && !host.starts_with("sha"))
      return is_digit(text_[end + 1]);
    const std::size_t dot = host.rfind('.');
    if (dot == Text::npos || dot + 1 == host.size()) return false;
    const auto is_all = [](Text text, bool (*is)(char)) { return std::all_of(text.begin(), text.end(), is); };
    const Text last = part_of(host, dot + 1);
    if (is_all(last, [](char c) { return is_letter(c); })) return last.size() >= 2;
    return std::count(host.begin(), host.end(), '.') == 3 &&
           is_all(host, [](char c) { return is_digit(c) || c == '.'; });
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
    const Announced announced = announced_by(name);
    if (announced == Announced::nothing) return {};
    const std::size_t separator = at_ + width;
    if (identifier_)
      return is_sure_token(part_of(text_, separator)) ? Span{separator, end_of_value(separator)} : Span();
    const auto before = static_cast<std::size_t>(name.data() - text_.data());
    const bool of_url = before != 0 && is_one_of(text_[before - 1], "?&");
    const bool any = announced == Announced::secret || of_url;
    if (c == ':')
      if (const Span found = block_below(separator, any)) return found;
    std::size_t start = separator;
    while (start < text_.size() && is_one_of(text_[start], "=:> \t\\")) ++start;
    if (start + 1 < text_.size() && text_[start] == '[' && is_quote(text_[start + 1])) ++start;
    if (start == text_.size()) return {};
    const bool quoted = is_quote(text_[start]);
    const Span value = quoted   ? Span{start + 1, end_of_quoted(start)}
                       : of_url ? Span{start, find_any("&; \t\n\"'", start)}
                                : Span{start, end_of_value(start)};
    const Text shown = part_of(text_, value.from, value.to - value.from);
    const bool hidden =
        any || (name.starts_with('-') && !name.starts_with("-D") ? !is_setting(shown) : is_token(shown));
    if (!hidden) return {};
    if (quoted) return value;
    if (is_header(name)) {
      const bool inside = before != 0 && is_quote(text_[before - 1]);
      return {start, std::min(inside ? text_.find(text_[before - 1], start) : text_.find('\n', start),
                              text_.size())};
    }
    if (c == ':' && start != separator && announced == Announced::secret)
      return {start, find_any("\n\"'", start)};
    return value;
  }
  /// Where a value without quotes ends: at a blank, at `,` and `/`; base64 has `/` in it.
  std::size_t end_of_value(std::size_t start) const noexcept {
    const std::size_t end = find_any("/,&; \t\n\"'", start);
    if (end == text_.size() || text_[end] != '/') return end;
    std::size_t last = start;
    std::size_t piece = start;
    for (; last < text_.size() && (is_alnum(text_[last]) || is_one_of(text_[last], "/+=")); ++last) {
      if (text_[last] != '/') continue;
      if (is_word(piece, last)) return end;
      piece = last + 1;
    }
    const bool whole = last == text_.size() || is_one_of(text_[last], ",&; \t\n\"'");
    const Look look(part_of(text_, start, last - start));
    return whole && !is_word(piece, last) && look.size() >= 32 && look.has_all() ? last : end;
  }
  bool is_word(std::size_t from, std::size_t to) const noexcept {
    const Text piece = part_of(text_, from, to - from);
    return piece.size() >= 3 && std::all_of(piece.begin(), piece.end(), is_lower);
  }
  /// %3D, %3A; escaped once more, %253D; else 0.
  std::size_t escaped_width() const noexcept {
    const std::size_t width = starts_at(text_, at_, "%25") ? 5 : 3;
    const std::size_t digit = at_ + width - 2;
    return digit + 1 < text_.size() && text_[digit] == '3' && is_one_of(text_[digit + 1], "DdAa") ? width : 0;
  }
  /// YAML: what is indented below `name:` or `name: |`.
  Span block_below(std::size_t separator, bool any) const noexcept {
    std::size_t start = separator;
    while (start < text_.size() && is_one_of(text_[start], " |>-+\r")) ++start;
    if (start + 1 >= text_.size() || text_[start] != '\n' || !is_one_of(text_[start + 1], " \t")) return {};
    const std::size_t from = find_other_than_blank(start + 1);
    if (!any && !is_token(part_of(text_, from, find_any(" \t\n", from) - from))) return {};
    std::size_t end = start;
    while (end + 1 < text_.size() && is_one_of(text_[end + 1], " \t"))
      end = std::min(text_.find('\n', end + 1), text_.size());
    return {from, end};
  }
  /// <password>value</password>
  Span element() const noexcept {
    const Text name = name_before(at_);
    const std::size_t before = at_ - name.size();
    if (before == 0 || text_[before - 1] != '<') return {};
    const Span value{at_ + 1, find_any("<\n", at_ + 1)};
    const Announced announced = announced_by(name);
    const bool hidden =
        announced == Announced::secret ||
        (announced == Announced::token && is_token(part_of(text_, value.from, value.to - value.from)));
    return hidden ? value : Span();
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
    const bool whole = (name.starts_with('-') && announced_by(name) != Announced::nothing) ||
                       (equals_ignoring_case(name, "bearer") &&
                        Look(part_of(text_, start, find_any(" \t\n", start) - start)).has_both()) ||
                       (name == "password" && text_.find("login ") != Text::npos) || is_spoken(name, start);
    if (!whole && !user) return {};
    const bool quoted = is_quote(text_[start]);
    const std::size_t end =
        quoted ? std::min(text_.find(text_[start], start + 1), text_.size()) : end_of_value(start);
    if (quoted) ++start;
    if (!user) {
      const bool setting =
          announced_by(name) == Announced::token && is_setting(part_of(text_, start, end - start));
      return setting ? Span() : Span{start, end};
    }
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
  bool identifier_;
};

}  // namespace

bool is_setting(Text value) noexcept {
  constexpr Word kSettings[] = {"true", "false", "none", "null", "on", "off", "yes", "no", "auto", "default"};
  const auto is_number = [](char c) { return is_digit(c) || is_one_of(c, ".-+"); };
  constexpr std::size_t kLongest = 6;  // a longer one may be a PIN
  if (value.size() <= kLongest && std::all_of(value.begin(), value.end(), is_number)) return true;
  return std::any_of(std::begin(kSettings), std::end(kSettings),
                     [value](const Word& one) { return equals_ignoring_case(value, one.view()); });
}

Announced announced_by(Text name) noexcept {
  constexpr std::size_t kMax = 128;
  if (name.empty() || name == "PWD" || name == "OLDPWD") return Announced::nothing;
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
  if (place) return Announced::nothing;
  const Text all(plain, size);
  for (const Word& word : kSecretWords)
    if (all.find(word.view()) != Text::npos) return Announced::secret;
  if (counted) return Announced::nothing;
  const std::size_t token = all.find("token");
  return secret_part || (token != Text::npos && !starts_at(all, token, "tokeniz")) ? Announced::token
                                                                                   : Announced::nothing;
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

/// The user's name as a component of a path, or at the end of a word of one (/tmp/torchinductor_alice,
/// /data/user=alice), or as a whole value: an account, a namespace. Not below site-packages, where it is a
/// package's name.
bool is_name_at(Text text, std::size_t at, Text name) noexcept {
  if (name.size() >= 2 && text == name) return true;
  if (name.size() < 2 || at == 0 || !starts_at(text, at, name)) return false;
  const bool hidden_folder = at >= 2 && text[at - 1] == '.' && text[at - 2] == '/';
  const bool escaped = at >= 3 && text[at - 3] == '%';
  if (!is_one_of(text[at - 1], "/_-=,:;@+~%[({") && !hidden_folder && !escaped) return false;
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
      if (is_word_start(text_, at_)) secret = {at_, at_ + shape_at(text_, at_, content_)};
      if (person_ != nullptr && !secret && is_name_at(text_, at_, person_->name))
        secret = {at_, at_ + person_->name.size()};
    } else if (kIndex.is_other[c]) {
      secret = Finder(text_, at_, content_).find();
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
  RedactedPieces pieces(text, Content::text);
  Writer writer(out);
  for (Text piece; pieces.next(piece);) writer.put(piece);
  return writer.done();
}

}  // namespace kshim::report
