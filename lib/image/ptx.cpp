// SPDX-License-Identifier: Apache-2.0
// Directives read here: PTX ISA 9.0, chapters "Directives" and "State Spaces, Types, and Variables".
#include "kshim/image/ptx.h"

#include "ptx_scanner.h"

namespace kshim::image {
namespace {

/// Decimal or 0x...; 0 for anything else, which no size or count may be.
std::uint64_t number_of(std::string_view word) noexcept {
  const bool hex = word.starts_with("0x") || word.starts_with("0X");
  if (hex) word.remove_prefix(2);
  if (word.ends_with('U')) word.remove_suffix(1);
  if (word.empty() || word.size() > (hex ? 15U : 18U)) return 0;
  std::uint64_t value = 0;
  for (const char c : word) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<unsigned>(c - '0');
    else if (hex && c >= 'a' && c <= 'f')
      digit = static_cast<unsigned>(c - 'a') + 10;
    else if (hex && c >= 'A' && c <= 'F')
      digit = static_cast<unsigned>(c - 'A') + 10;
    else
      return 0;
    value = value * (hex ? 16 : 10) + digit;
  }
  return value;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) noexcept {
  return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

constexpr std::uint32_t to_u32(std::uint64_t value) noexcept {
  return value < KernelInfo::kUnknown ? static_cast<std::uint32_t>(value) : KernelInfo::kUnknown;
}

/// Bytes of a fundamental or opaque type, 0 when the word is no type. The number in the name is its width in
/// bits.
std::uint64_t type_size(std::string_view word) noexcept {
  if (word == ".texref" || word == ".samplerref" || word == ".surfref") return 8;
  if (word == ".f16x2" || word == ".bf16x2") return 4;
  for (const std::string_view prefix : {".bf", ".tf", ".b", ".u", ".s", ".f"}) {
    if (!word.starts_with(prefix)) continue;
    const std::uint64_t bits = number_of(word.substr(prefix.size()));
    if (bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128) return bits / 8;
  }
  return 0;
}

/// PTX ISA, "Identifiers": a letter, _, $ or % first; the scanner checks the rest.
constexpr bool is_identifier(std::string_view word) noexcept {
  if (word.empty()) return false;
  const char c = word.front();
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

/// The declaration after a state space: `.align 4 .v2 .b8 name[4][2]`, up to but not including the word that
/// ends it.
struct Declaration {
  std::string_view name;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  bool managed = false;
  std::string_view stop;  ///< "," ")" ";" "=" or empty at the end of the text
};
/// `(.managed)` or `(.managed, .unified(1, 2))` after `.attribute`; its ')' ends no declaration.
bool read_attributes(PtxScanner& scanner) noexcept {
  bool managed = false;
  std::size_t depth = 0;
  do {
    const std::string_view word = scanner.next().text;
    if (word.empty()) break;
    if (word == "(") ++depth;
    if (word == ")" && depth != 0) --depth;
    if (word == ".managed") managed = true;
  } while (depth != 0);
  return managed;
}
Declaration read_declaration(PtxScanner& scanner) noexcept {
  Declaration out;
  std::uint64_t element = 0;
  std::uint64_t vector = 1;
  std::uint64_t count = 1;
  std::uint64_t given_alignment = 0;
  bool pointer = false;  // `.ptr .global .align 16` describes the pointee, not the parameter
  for (;;) {
    const std::string_view word = scanner.next().text;
    if (word.empty() || word == "," || word == ")" || word == ";" || word == "=") {
      out.stop = word;
      break;
    }
    if (word == ".align") {
      const std::uint64_t value = number_of(scanner.next().text);
      const bool power = value != 0 && (value & (value - 1)) == 0;
      if (!pointer && power && value <= 4096) given_alignment = value;
    } else if (word == ".ptr") {
      pointer = true;
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      vector = number_of(word.substr(2));
    } else if (word == ".attribute") {
      out.managed = read_attributes(scanner);
    } else if (const std::uint64_t bytes = type_size(word); bytes != 0) {
      element = bytes;
    } else if (word == "[") {
      const std::string_view length = scanner.next().text;
      if (length == "]") {
        count = 0;  // `name[]` has no size
        continue;
      }
      count = multiply(count, number_of(length));
    } else if (is_identifier(word) && out.name.empty()) {
      out.name = word;
    }
  }
  out.size = multiply(multiply(element, vector), count);
  out.alignment = given_alignment != 0 ? given_alignment : multiply(element, vector);
  if (out.alignment == 0) out.alignment = 1;
  return out;
}

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  const std::uint64_t rest = value % alignment;
  return rest == 0 || value > UINT64_MAX - alignment ? value : value + alignment - rest;
}

/// After `.entry NAME`: parameters, one at a time, laid out as the ABI does.
struct ParameterList {
  std::uint64_t end = 0;
  std::uint32_t count = 0;
  bool open = false;
};
bool next_parameter(PtxScanner& scanner, ParameterList& list, ParameterInfo& out) noexcept {
  while (list.open) {
    const std::string_view word = scanner.next().text;
    if (word.empty() || word == ")") list.open = false;
    if (word != ".param") continue;
    const Declaration declaration = read_declaration(scanner);
    if (declaration.stop != ",") list.open = false;
    const std::uint64_t offset = align_up(list.end, declaration.alignment);
    list.end = offset > UINT64_MAX - declaration.size ? UINT64_MAX : offset + declaration.size;
    ++list.count;
    out = {to_u32(offset), to_u32(declaration.size)};
    return true;
  }
  return false;
}

/// Product of `256, 1, 1`; leaves the first word that is not part of it in `word`.
std::uint64_t read_product(PtxScanner& scanner, PtxWord& word) noexcept {
  std::uint64_t product = 1;
  for (;;) {
    product = multiply(product, number_of(scanner.next().text));
    word = scanner.next();
    if (word.text != ",") return product;
  }
}

/// Reads the directives before an entry's body, from `ahead` on; returns the word that ends them: `{`, `;`,
/// or nothing.
std::string_view read_directives(PtxScanner& scanner, PtxWord ahead, KernelInfo& kernel) noexcept {
  while (!ahead.text.empty() && ahead.text != "{" && ahead.text != ";") {
    if (ahead.text == ".maxntid" || ahead.text == ".reqntid")
      kernel.max_threads = to_u32(read_product(scanner, ahead));
    else
      ahead = scanner.next();
  }
  return ahead.text;
}

/// Static shared memory of a body: variables that ptxas's front end has demoted into the function that uses
/// them.
std::uint64_t read_body(PtxScanner& scanner) noexcept {
  std::uint64_t shared = 0;
  for (std::size_t depth = 1; depth != 0;) {
    const std::string_view word = scanner.next().text;
    if (word.empty()) break;
    if (word == "{") ++depth;
    if (word == "}") --depth;
    if (word != ".shared") continue;
    const Declaration declaration = read_declaration(scanner);
    const std::uint64_t offset = align_up(shared, declaration.alignment);
    shared = offset > UINT64_MAX - declaration.size ? UINT64_MAX : offset + declaration.size;
  }
  return shared;
}

}  // namespace

Result<PtxReader> PtxReader::open(Bytes bytes) noexcept {
  PtxReader reader;
  reader.text_ = text_of(bytes);
  reader.text_ = reader.text_.substr(0, reader.text_.find('\0'));
  PtxScanner scanner(reader.text_);
  bool has_target = false;
  while (!reader.isa_.known() || !has_target) {
    const PtxWord word = scanner.next();
    if (word.text == ".version") {
      const PtxWord value = scanner.next();
      const auto version = parse_version(value.text);
      if (!version) return Error{Errc::malformed_text, value.end - value.text.size()};
      reader.isa_ = *version;
    } else if (word.text == ".target") {
      const PtxWord value = scanner.next();
      const auto arch = parse_arch(value.text);
      if (!arch || !value.text.starts_with("sm_"))
        return Error{Errc::malformed_text, value.end - value.text.size()};
      reader.target_ = *arch;
      has_target = true;
    } else if (word.text != ",") {
      // Anything else before both are read: not PTX. (`.target sm_75, debug` is the one list that may stand
      // between.)
      if (!has_target || word.text.empty() || word.text.front() == '.' || word.text == "{")
        return Error{Errc::malformed_text, word.end - word.text.size()};
    }
  }
  return reader;
}

bool PtxReader::ends_well() const noexcept {
  PtxScanner scanner(text_);
  bool ended = false;
  for (;;) {
    const std::string_view word = scanner.next().text;
    if (word.empty()) return ended;
    ended = word == ";" || word == "{";
    if (word == "{" && !scanner.skip_block()) return false;
  }
}

Result<KernelInfo> PtxReader::next_kernel(std::uint64_t& cursor) const noexcept {
  PtxScanner scanner(text_, cursor < text_.size() ? static_cast<std::size_t>(cursor) : text_.size());
  for (;;) {
    const PtxWord word = scanner.next();
    if (word.text.empty()) {
      cursor = text_.size();
      return Error{Errc::not_found, text_.size()};
    }
    if (word.text == "{") {
      scanner.skip_block();
      continue;
    }
    if (word.text != ".entry") continue;
    KernelInfo kernel;
    kernel.name = scanner.next().text;
    PtxWord ahead = scanner.next();
    if (ahead.text == "(") {
      ParameterList list{.open = true};
      ParameterInfo parameter;
      while (next_parameter(scanner, list, parameter)) {
      }
      kernel.parameter_count = list.count;
      kernel.parameter_bytes = to_u32(list.end);
      ahead = scanner.next();
    } else {
      kernel.parameter_bytes = 0;
    }
    const std::string_view last = read_directives(scanner, ahead, kernel);
    if (!is_identifier(kernel.name)) {
      cursor = text_.size();
      return Error{Errc::malformed_text, word.end};
    }
    const bool declared_only = last != "{";
    if (!declared_only) kernel.shared_bytes = to_u32(read_body(scanner));
    cursor = scanner.position();
    if (declared_only) continue;
    return kernel;
  }
}

Result<KernelInfo> PtxReader::next_brief(std::uint64_t& cursor) const noexcept {
  PtxScanner scanner(text_, cursor < text_.size() ? static_cast<std::size_t>(cursor) : text_.size());
  for (;;) {
    const PtxWord word = scanner.next();
    if (word.text.empty()) {
      cursor = text_.size();
      return Error{Errc::not_found, text_.size()};
    }
    if (word.text == "{") scanner.skip_block();
    if (word.text != ".entry") continue;
    KernelInfo kernel;
    kernel.name = scanner.next().text;
    const std::string_view last = read_directives(scanner, scanner.next(), kernel);
    if (!is_identifier(kernel.name)) {
      cursor = text_.size();
      return Error{Errc::malformed_text, word.end};
    }
    if (last != "{") continue;  // declared only
    scanner.skip_block();
    cursor = scanner.position();
    return kernel;
  }
}

Result<ParameterInfo> PtxReader::parameter(std::string_view kernel, std::uint32_t ordinal) const noexcept {
  PtxScanner scanner(text_);
  for (;;) {
    const std::string_view word = scanner.next().text;
    if (word.empty()) return Error{Errc::not_found};
    if (word == "{") scanner.skip_block();
    if (word != ".entry" || scanner.next().text != kernel || scanner.next().text != "(") continue;
    ParameterList list{.open = true};
    ParameterInfo parameter;
    while (next_parameter(scanner, list, parameter))
      if (list.count == ordinal + 1) return parameter;
    return Error{Errc::not_found};
  }
}

Result<GlobalInfo> PtxReader::next_global(std::uint64_t& cursor) const noexcept {
  PtxScanner scanner(text_, cursor < text_.size() ? static_cast<std::size_t>(cursor) : text_.size());
  bool external = false;
  for (;;) {
    const std::string_view word = scanner.next().text;
    if (word.empty()) break;
    if (word == "{") scanner.skip_block();
    if (word == "(") {  // parameters of an entry or function: `.ptr .global` there is no variable
      std::string_view inner = scanner.next().text;
      while (!inner.empty() && inner != ")") inner = scanner.next().text;
    }
    if (word == ";" || word == "{") external = false;
    if (word == ".extern") external = true;
    if (word != ".global" && word != ".const") continue;
    const Declaration declaration = read_declaration(scanner);
    if (declaration.stop == "=") scanner.skip_statement();
    cursor = scanner.position();
    if (declaration.name.empty() || external) {
      external = false;
      continue;
    }
    GlobalInfo global;
    global.name = declaration.name;
    global.size = declaration.size;
    global.constant = word == ".const";
    global.managed = declaration.managed;
    return global;
  }
  cursor = text_.size();
  return Error{Errc::not_found, text_.size()};
}

}  // namespace kshim::image
