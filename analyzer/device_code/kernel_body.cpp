// SPDX-License-Identifier: Apache-2.0
// Encodings as measured on what ptxas 12.9 and 13.0 make of empty, trapping and printing bodies for sm_52,
// 61, 70, 75, 80, 90, 100 and 120: docs/image-format.md.
#include "analyzer/device_code/kernel_body.h"

#include <algorithm>
#include <string>

#include "kshim/image/ptx.h"

namespace kshim::device_code {
namespace {

using image::CubinReader;
using image::ImageKind;

// A stub that prints sets up its arguments and calls: 384 bytes at most were measured for one argument.
constexpr std::uint64_t kMaxPrinterBytes = 640;
constexpr std::uint64_t kFarLarger = 4;
constexpr std::size_t kMaxInstructions = 64;
constexpr std::size_t kMaxText = 8192;

enum class Step : std::uint8_t { nothing, exit, trap, other };

// Volta and later: 16 bytes, the operation in the low 12 bits, whose upper three tell the form, the
// predicate in the next four; 7 = always, 15 = never.
Step step_of_volta(std::uint64_t word) {
  constexpr std::uint64_t kNever = 15;
  constexpr std::uint64_t kAlways = 7;
  const std::uint64_t predicate = (word >> 12U) & 15U;
  if (predicate == kNever) return Step::nothing;
  switch (word & 0xfffU) {
    case 0x94d:
      return predicate == kAlways ? Step::exit : Step::other;
    case 0x95c:
      return predicate == kAlways ? Step::trap : Step::other;
    case 0x918:
      return Step::nothing;
    default:
      break;
  }
  // Moves, constants and special registers into registers, barriers of memory: nothing that is seen later.
  static constexpr std::array<std::uint64_t, 9> kHarmless = {0x002, 0x024, 0x182, 0x119, 0x005,
                                                             0x0b9, 0x1ac, 0x192, 0x1ab};
  const bool harmless = std::ranges::find(kHarmless, word & 0x1ffU) != kHarmless.end();
  return harmless ? Step::nothing : Step::other;
}

// Maxwell and Pascal: 8 bytes, every fourth word schedules the three behind it.
Step step_of_maxwell(std::uint64_t word) {
  switch (word >> 48U) {
    case 0xe300:
      return ((word >> 16U) & 15U) == 7 ? Step::exit : Step::other;
    case 0xe3a0:
      return Step::trap;
    case 0x50b0:
    case 0x4c98:
    case 0x5c98:
      return Step::nothing;
    default:
      return Step::other;
  }
}

BodyKind kind_of_code(Bytes code, image::ComputeCapability cc) {
  const bool volta = cc.major >= 7;
  if (cc.major < 5) return BodyKind::unknown;
  const std::size_t stride = volta ? 16 : 8;
  for (std::size_t i = 0; i < kMaxInstructions; ++i) {
    if (!volta && i % 4 == 0) continue;
    const auto word = read_le<std::uint64_t>(code, i * stride);
    if (!word) return BodyKind::unknown;
    switch (volta ? step_of_volta(*word) : step_of_maxwell(*word)) {
      case Step::nothing:
        break;
      case Step::exit:
        return BodyKind::returns;
      case Step::trap:
        return BodyKind::stops;
      case Step::other:
        return BodyKind::works;
    }
  }
  return BodyKind::works;
}

// EIATTR_EXTERNS of .nv.info.KERNEL: symbols of functions outside that it calls.
bool calls_printer(const image::ElfReader& elf, std::string_view kernel) {
  constexpr std::uint8_t kSized = 4;
  constexpr std::uint8_t kExterns = 0x0f;
  const auto info = elf.section(".nv.info." + std::string(kernel));
  const auto symbols = elf.section(".symtab");
  if (!info || !symbols) return false;
  for (std::uint64_t at = 0;;) {
    const auto format = read_le<std::uint8_t>(info->bytes, at);
    const auto attribute = read_le<std::uint8_t>(info->bytes, at + 1);
    const auto value = read_le<std::uint16_t>(info->bytes, at + 2);
    if (!format || !attribute || !value || *format == 0 || *format > kSized) return false;
    at += 4;
    if (*format != kSized) continue;
    for (std::uint64_t entry = at; *attribute == kExterns && entry + 4 <= at + *value; entry += 4) {
      const auto index = read_le<std::uint32_t>(info->bytes, entry);
      const auto symbol =
          index ? elf.symbol(*symbols, *index) : Result<image::ElfSymbol>(Error{Errc::truncated});
      if (symbol && (symbol->name == "vprintf" || symbol->name == "__assertfail")) return true;
    }
    at += *value;
  }
}

KernelBody body_in_cubin(Bytes clear, std::string_view kernel) {
  const auto cubin = CubinReader::open(clear);
  if (!cubin) return {};
  const auto section = cubin->elf().section(".text." + std::string(kernel));
  if (!section || section->bytes.empty()) return {};
  KernelBody out{kind_of_code(section->bytes, cubin->arch().cc), section->size};
  if (out.kind == BodyKind::works && out.bytes <= kMaxPrinterBytes && calls_printer(cubin->elf(), kernel))
    out.kind = BodyKind::prints;
  return out;
}

// The text between the braces of an entry; empty where they do not match.
std::string_view body_text(std::string_view text) {
  const std::size_t open = text.find('{');
  if (open == std::string_view::npos) return {};
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return {};
}

std::string_view first_word(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return line.substr(0, line.find_first_of(" \t;\r"));
}

BodyKind kind_of_text(std::string_view body) {
  bool prints = false;
  bool stops = false;
  while (!body.empty()) {
    const std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(std::min(body.size(), line.size() + 1));
    const std::string_view word = first_word(line);
    if (word.empty() || word.starts_with("//") || word.starts_with('.') || word == "{" || word == "}" ||
        word.starts_with('(') || word.starts_with(')') || word.starts_with("param") ||
        word.starts_with("retval"))
      continue;
    if (word == "vprintf," || word == "__assertfail,") {
      prints = true;
      continue;
    }
    if (word == "trap") {
      stops = true;
      continue;
    }
    static constexpr std::array<std::string_view, 9> kSetUp = {
        "ret", "exit", "mov.", "cvta.", "st.param", "st.local", "ld.param", "add.u64", "call"};
    const bool harmless =
        std::ranges::any_of(kSetUp, [&](std::string_view begin) { return word.starts_with(begin); });
    if (!harmless && word != "prototype") return BodyKind::works;
  }
  return prints ? BodyKind::prints : stops ? BodyKind::stops : BodyKind::returns;
}

KernelBody body_in_ptx(Bytes clear, std::string_view kernel) {
  const auto ptx = image::PtxReader::open(clear);
  const std::string_view text = text_of(clear);
  for (std::uint64_t cursor = 0; ptx;) {
    const auto found = ptx->next_brief(cursor);
    if (!found) return {};
    if (found->name != kernel) continue;
    const std::string_view body =
        body_text(text.substr(static_cast<std::size_t>(found->name.data() - text.data())));
    if (body.empty()) return {};
    return {body.size() > kMaxText ? BodyKind::works : kind_of_text(body), body.size()};
  }
  return {};
}

}  // namespace

KernelBody read_body(ImageKind kind, Bytes clear, std::string_view kernel) {
  switch (kind) {
    case ImageKind::cubin:
      return body_in_cubin(clear, kernel);
    case ImageKind::ptx:
      return body_in_ptx(clear, kernel);
    case ImageKind::ltoir:
    case ImageKind::tileir:
      break;
  }
  return {};
}

bool is_stub_of(const KernelBody& body, const KernelBody& other) {
  if (other.kind != BodyKind::works) return false;
  if (body.kind == BodyKind::prints) return other.bytes / kFarLarger >= body.bytes;
  return body.kind == BodyKind::returns || body.kind == BodyKind::stops;
}

}  // namespace kshim::device_code
