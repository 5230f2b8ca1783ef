// SPDX-License-Identifier: Apache-2.0
// Keeps secrets out of what is written down: one rule for the shim and the command. No heap, libc alone. It
// knows names that announce a secret (password=, --hf-token, "api_key": ...) and the shapes of secrets
// themselves (keys of known services, private keys, credentials in URLs): the best that can be done without
// knowing the secrets, and no more. What is hidden becomes one `…`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kshim::report {

constexpr std::string_view kHidden = "\u2026";

struct Redacted {
  std::size_t size = 0;
  bool cut = false;  ///< it did not fit; never inside a character
};

/// For anything: paths, values, names, frames, logs of compilers and drivers. The size of `out` is the cap.
Redacted redact(std::string_view text, std::span<char> out) noexcept;

/// Of whom nothing is to be told, with KSHIM_PRIVATE: home folders (this one, /home/NAME, /root) become `~`,
/// and the name within a path `…`.
struct Person {
  std::string_view home;  ///< absolute; empty where unknown
  std::string_view name;
};

/// The same piece by piece, for a writer with a form of its own: parts of the text, and kHidden in place of
/// secrets. What a person hides comes as Person says.
class RedactedPieces {
 public:
  explicit RedactedPieces(std::string_view text, const Person* person = nullptr) noexcept
      : text_(text), person_(person) {}
  bool next(std::string_view& piece) noexcept;

 private:
  std::string_view text_;
  const Person* person_;
  std::size_t at_ = 0;
  std::size_t hidden_to_ = 0;  ///< from at_ to here `mask_` comes next
  std::string_view mask_;
};

/// Whether a value of this name (an option, a variable, a key, a header) is a secret.
bool names_secret(std::string_view name) noexcept;

enum class ArgumentDetail : std::uint8_t {
  names,  ///< program, script, names of options, values of harmless options
  full,   ///< everything that is no known secret
  off     ///< nothing
};
enum class ArgumentPart : std::uint8_t { program, script, option, value };

/// Walks over an argument list in order: what an argument shows depends on those before it. Every argument
/// gives one text, so positions and count survive.
class ArgumentRedactor {
 public:
  explicit ArgumentRedactor(ArgumentDetail detail) noexcept : detail_(detail) {}
  Redacted next(std::string_view argument, std::span<char> out) noexcept;
  /// What the last argument was. A script is also a module after `python -m`, and that `-m`.
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
