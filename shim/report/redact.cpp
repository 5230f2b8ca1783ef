// SPDX-License-Identifier: Apache-2.0
#include "report/redact.h"

#include <cstdint>

#include "guest/slices.h"
#include "guest/text_buffer.h"

namespace kshim::shim {
namespace {

constexpr std::string_view kMasked = "***";
constexpr std::size_t kLongProgram = 120;
constexpr std::size_t kTokenLength = 20;  // shorter ones are words that happen to begin so

constexpr std::string_view kSecretWords[] = {
#define KSHIM_SECRET_WORD(word) word,
#define KSHIM_SECRET_START(text)
#include "report/redaction.def"
#undef KSHIM_SECRET_WORD
#undef KSHIM_SECRET_START
};
constexpr std::string_view kSecretStarts[] = {
#define KSHIM_SECRET_WORD(word)
#define KSHIM_SECRET_START(text) text,
#include "report/redaction.def"
#undef KSHIM_SECRET_WORD
#undef KSHIM_SECRET_START
};

bool names_secret(std::string_view name) noexcept {
  Text<128> plain;
  for (const char c : name)
    if (c != '-' && c != '_') plain.put(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  for (const std::string_view word : kSecretWords) {
    const std::size_t found = plain.view().find(word);
    // --max-tokens 512 and --tokenizer NAME are no secrets, and everybody's evidence.
    if (found == std::string_view::npos) continue;
    const std::string_view after = part_of(plain.view(), found + word.size());
    if (word != "token" || after.empty() || after == "file" || after == "key") return true;
  }
  return false;
}

bool is_token(std::string_view text) noexcept {
  if (text.size() < kTokenLength || text.find_first_of("/ .=") < kTokenLength) return false;
  for (const std::string_view start : kSecretStarts)
    if (text.starts_with(start)) return true;
  return false;
}

/// python -c PROGRAM, sh -c PROGRAM, also bundled with other short options: -lc, -uc, -xec.
bool takes_program(std::string_view option) noexcept {
  if (option.size() < 2 || option.size() > 5 || option[0] != '-' || option.back() != 'c') return false;
  for (const char c : part_of(option, 1))
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
  return true;
}

MaskedText text_of_length(std::size_t size) noexcept {
  MaskedText out;
  out << "[" << static_cast<std::uint64_t>(size) << " bytes]";
  return out;
}

}  // namespace

MaskedText mask_urls(std::string_view text) noexcept {
  constexpr std::string_view kScheme = "://";
  constexpr std::string_view kAuthorityEnd = "/?# \t\n'\"";
  MaskedText out;
  for (;;) {
    const std::size_t scheme = text.find(kScheme);
    if (scheme == std::string_view::npos) break;
    const std::size_t start = scheme + kScheme.size();
    const std::string_view rest = part_of(text, start);
    const std::string_view authority = rest.substr(0, rest.find_first_of(kAuthorityEnd));
    const std::size_t at = authority.rfind('@');
    out << text.substr(0, start);
    if (at != std::string_view::npos) out << kMasked;
    text.remove_prefix(start + (at == std::string_view::npos ? 0 : at));
  }
  out << text;
  return out;
}

MaskedText ArgumentMask::next(std::string_view argument) noexcept {
  const Expects expected = expects_;
  expects_ = Expects::plain;
  MaskedText masked;
  masked << kMasked;
  if (expected == Expects::secret && !argument.starts_with("--")) return masked;
  if (expected == Expects::program && argument.size() > kLongProgram) return text_of_length(argument.size());

  constexpr std::string_view kBearer = "earer ";  // -H "Authorization: Bearer X"
  const std::size_t bearer = argument.find(kBearer);
  if (bearer != std::string_view::npos) {
    MaskedText out;
    out << argument.substr(0, bearer + kBearer.size()) << kMasked;
    return out;
  }
  const std::size_t equals = argument.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view name = argument.substr(0, equals);
    if (names_secret(name) || is_token(part_of(argument, equals + 1))) {
      MaskedText out;
      out << name << "=" << kMasked;
      return out;
    }
  } else if (argument.starts_with('-') && names_secret(argument)) {
    expects_ = Expects::secret;
  } else if (takes_program(argument)) {
    expects_ = Expects::program;
  } else if (is_token(argument)) {
    return masked;
  }
  return mask_urls(argument);
}

}  // namespace kshim::shim
