// SPDX-License-Identifier: Apache-2.0
#include "kshim/image/arch.h"

#include <charconv>

namespace kshim::image {
namespace {

/// Appends to a ShortName; what does not fit is dropped, which the value ranges of Arch and Version rule out.
class Writer {
 public:
  void text(std::string_view part) noexcept {
    for (const char c : part)
      if (name_.size + 1U < name_.text.size()) name_.text[name_.size++] = c;
  }
  void number(unsigned value) noexcept {
    std::array<char, 10> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  ShortName take() const noexcept { return name_; }

 private:
  ShortName name_;
};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Takes leading digits off `text`. At most 4: no architecture or version is longer, and the value cannot
/// overflow.
Result<unsigned> take_number(std::string_view& text) noexcept {
  unsigned value = 0;
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) {
    if (length == 4) return Error{Errc::malformed_text};
    value = value * 10 + static_cast<unsigned>(text[length] - '0');
    ++length;
  }
  if (length == 0) return Error{Errc::malformed_text};
  text.remove_prefix(length);
  return value;
}

bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

ShortName to_name(ImageKind kind, Arch arch) noexcept {
  Writer out;
  constexpr std::string_view kPrefixes[] = {"compute_", "sm_", "lto_", "tile_"};
  out.text(kPrefixes[static_cast<std::size_t>(kind)]);
  out.number(arch.cc.number());
  if (arch.suffix != Suffix::none) out.text(arch.suffix == Suffix::a ? "a" : "f");
  return out.take();
}

ShortName to_name(ComputeCapability cc) noexcept { return to_name(Version{cc.major, cc.minor}); }

ShortName to_name(Version version) noexcept {
  Writer out;
  out.number(version.major);
  out.text(".");
  out.number(version.minor);
  return out.take();
}

Result<ImageKind> parse_kind(std::string_view name) noexcept {
  for (const ImageKind kind : {ImageKind::ptx, ImageKind::cubin, ImageKind::ltoir, ImageKind::tileir})
    if (to_name(kind) == name) return kind;
  return Error{Errc::malformed_text};
}

Result<Arch> parse_arch(std::string_view text) noexcept {
  constexpr Error kMalformed{Errc::malformed_text};
  // The tables of knowledge/ have numbers alone, and many.
  const bool prefixed = !text.empty() && !is_digit(text.front()) &&
                        (take_prefix(text, "sm_") || take_prefix(text, "compute_") ||
                         take_prefix(text, "lto_") || take_prefix(text, "tile_") || take_prefix(text, "sm"));
  const auto number = take_number(text);
  if (!number) return kMalformed;
  Arch arch;
  if (!prefixed && take_prefix(text, ".")) {
    const auto minor = take_number(text);
    if (!minor || *minor > 9 || *number == 0 || *number > 999) return kMalformed;
    arch.cc = {static_cast<std::uint16_t>(*number), static_cast<std::uint16_t>(*minor)};
  } else {
    if (*number < 10) return kMalformed;
    arch.cc = ComputeCapability::from_number(*number);
  }
  if (take_prefix(text, "a"))
    arch.suffix = Suffix::a;
  else if (take_prefix(text, "f"))
    arch.suffix = Suffix::f;
  if (!text.empty()) return kMalformed;
  return arch;
}

Result<Version> parse_version(std::string_view text) noexcept {
  constexpr Error kMalformed{Errc::malformed_text};
  const auto major = take_number(text);
  if (!major || *major == 0) return kMalformed;
  Version version{static_cast<std::uint16_t>(*major), 0};
  if (take_prefix(text, ".")) {
    const auto minor = take_number(text);
    if (!minor) return kMalformed;
    version.minor = static_cast<std::uint16_t>(*minor);
  }
  if (!text.empty()) return kMalformed;
  return version;
}

}  // namespace kshim::image
