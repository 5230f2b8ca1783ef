// SPDX-License-Identifier: Apache-2.0
// Removes secrets from text: one rule for the shim and the command. No heap, libc alone. It recognizes names
// that announce a secret (password=, --hf-token, "api_key": ...) and formats of secrets (keys of known
// services, private keys, credentials in URLs). Other secrets are not recognized. A hidden part becomes one
// `…`.
//
// Names that are common elsewhere (key, token, pass, sig: token_dim=64) announce only what looks like a
// token: digits and letters mixed, not words. A value without quotes ends at `/` and `,`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kshim::report {

constexpr std::string_view kHidden = "\u2026";

struct Redacted {
  std::size_t size = 0;
  bool cut = false;  ///< the text did not fit; it is cut between two characters
};

/// What a text is. schema.def has the kinds `text` and `texts` for the first.
enum class Content : std::uint8_t {
  text,       ///< what a person or a program wrote: arguments, values of variables, logs
  identifier  ///< what is looked up by its exact spelling: a path, a kernel, a symbol. Only credentials in
              ///< URLs are hidden, and tokens of 20 characters and more that have digits, capitals and small
              ///< letters
};

/// Redacts Content::text. At most out.size() bytes.
Redacted redact(std::string_view text, std::span<char> out) noexcept;

/// The user to hide, with KSHIM_PRIVATE: home folders (this one, /home/NAME, /root) become `~`, and the name
/// within a path becomes `…`.
struct Person {
  std::string_view home;  ///< absolute; empty where unknown
  std::string_view name;
};

/// The same piece by piece, for a writer that escapes text: parts of the text, and kHidden in place of
/// secrets.
class RedactedPieces {
 public:
  RedactedPieces(std::string_view text, Content content, const Person* person = nullptr) noexcept
      : text_(text), content_(content), person_(person) {}
  bool next(std::string_view& piece) noexcept;

 private:
  std::string_view text_;
  Content content_;
  const Person* person_;
  std::size_t at_ = 0;
  std::size_t hidden_to_ = 0;  ///< from at_ to here `mask_` comes next
  std::string_view mask_;
};

enum class ArgumentDetail : std::uint8_t {
  names,  ///< program, script, names of options, values of harmless options
  full,   ///< everything that is no known secret
  off     ///< nothing
};
enum class ArgumentPart : std::uint8_t { program, script, option, value };

/// Redacts an argument list in order, because the result for an argument depends on those before it. Every
/// argument gives one text, so positions and count are kept.
class ArgumentRedactor {
 public:
  explicit ArgumentRedactor(ArgumentDetail detail) noexcept : detail_(detail) {}
  Redacted next(std::string_view argument, std::span<char> out) noexcept;
  /// The kind of the last argument. `python -m` and the module after it count as the script.
  ArgumentPart part() const noexcept { return part_; }

 private:
  enum class Expects : std::uint8_t { anything, harmless_value, own_value, secret, credentials, module };
  enum class Program : std::uint8_t { other, python, shell };
  Redacted classify(std::string_view argument, std::span<char> out) noexcept;
  Redacted option(std::string_view argument, std::span<char> out) noexcept;
  Redacted full(std::string_view argument, std::span<char> out) noexcept;
  bool is_script(std::string_view argument, Expects expected) const noexcept;
  ArgumentDetail detail_;
  ArgumentPart part_ = ArgumentPart::program;
  Expects expects_ = Expects::anything;
  Program program_ = Program::other;
  bool first_ = true;
  bool script_seen_ = false;
};

}  // namespace kshim::report
