// SPDX-License-Identifier: Apache-2.0
#include "track/compiler_errors.h"

#include <algorithm>

#include "cuda/call_args.h"
#include "guest/reentry_guard.h"
#include "guest/safe_memory.h"
#include "guest/slices.h"
#include "guest/text_buffer.h"

namespace kshim::shim {
namespace {

struct RefusalRow {
  Layer layer;
  int code;
  std::string_view name;
  bool definitive;
};
constexpr RefusalRow kRefusals[] = {
#define KSHIM_REFUSAL(layer, code, name, definitive) {Layer::layer, code, name, definitive},
#include "cuda/compilers.def"
#undef KSHIM_REFUSAL
};

// The spellings that NVRTC and nvJitLink document; a bare one has its value in the next option.
constexpr std::string_view kArchOptions[] = {"--gpu-architecture", "-arch"};

std::string_view option_at(const CompilerCall& call, unsigned index) noexcept {
  const char* text = nullptr;
  if (!read_memory(address_of(call.options) + index * sizeof text, &text, sizeof text) || text == nullptr)
    return {};
  return readable_text(text);
}

/// The last one counts, as for the libraries.
std::string_view asked_arch(const CompilerCall& call) noexcept {
  constexpr unsigned kMaxOptions = 1024;
  std::string_view asked;
  const unsigned count = std::min(call.count, kMaxOptions);
  for (unsigned i = 0; i < count; ++i) {
    const std::string_view option = option_at(call, i);
    for (const std::string_view name : kArchOptions) {
      if (!option.starts_with(name)) continue;
      const std::string_view rest = part_of(option, name.size());
      if (rest.empty() && i + 1 < count)
        asked = option_at(call, i + 1);
      else if (rest.starts_with('='))
        asked = part_of(rest, 1);
    }
  }
  return asked;
}

template <class Function>
Function function_of(const LoadedElf& library, std::string_view name) noexcept {
  return reinterpret_cast<Function>(library.find_symbol(name, gnu_hash(name)));
}

void ask_version(const LoadedElf& library, Layer layer, Refusal& out) noexcept {
  const auto version =
      function_of<int (*)(int*, int*)>(library, layer == Layer::nvrtc ? "nvrtcVersion" : "nvJitLinkVersion");
  int major = 0;
  int minor = 0;
  if (version == nullptr || version(&major, &minor) != 0 || major <= 0 || minor < 0) return;
  out.version << static_cast<std::uint64_t>(major) << "." << static_cast<std::uint64_t>(minor);
}

/// NVRTC lists compute capabilities as 75, 80 ...; before CUDA 11.2 it has no such function.
void ask_known(const LoadedElf& library, Refusal& out) noexcept {
  constexpr int kMax = 256;
  const auto count_of = function_of<int (*)(int*)>(library, "nvrtcGetNumSupportedArchs");
  const auto list = function_of<int (*)(int*)>(library, "nvrtcGetSupportedArchs");
  int count = 0;
  if (count_of == nullptr || list == nullptr || count_of(&count) != 0 || count <= 0 || count > kMax) return;
  int numbers[kMax] = {};
  if (list(numbers) != 0) return;
  for (int i = 0; i < count && out.known_count < Refusal::kMaxKnown; ++i) {
    if (numbers[i] <= 0) continue;
    Text<32> name;
    name << "compute_" << static_cast<std::uint64_t>(numbers[i]);
    const auto arch = image::parse_arch(name.view());
    if (!arch) continue;
    out.names[out.known_count] = to_name(image::ImageKind::ptx, *arch);
    out.known[out.known_count] = out.names[out.known_count].view();
    ++out.known_count;
  }
}

const RefusalRow* row_for(Layer layer, int code) noexcept {
  for (const RefusalRow& row : kRefusals)
    if (row.layer == layer && row.code == code) return &row;
  return nullptr;
}

bool knows(const Refusal& refusal, image::ComputeCapability cc) noexcept {
  return std::any_of(refusal.known, refusal.known + refusal.known_count, [&](std::string_view name) {
    const auto arch = image::parse_arch(name);
    return arch && arch->cc == cc;
  });
}

}  // namespace

bool examine_refusal(const CompilerCall& call, Refusal& out) noexcept {
  const Layer layer = row_of(call.hook).layer;
  const RefusalRow* row = row_for(layer, call.code);
  if (row == nullptr) return false;
  const std::string_view asked = asked_arch(call);
  const auto arch = image::parse_arch(asked);
  if (!arch) return false;
  const LoadedObject library = find_loaded_object(call.real);
  if (!library) return false;
  out.hook = call.hook;
  out.code = call.code;
  out.code_name = row->name;
  out.caller = call.caller;
  out.library = library.identity;
  out.asked << asked;
  if (const ScopedQuestion question; question) {
    ask_version(library.elf, layer, out);
    if (layer == Layer::nvrtc) ask_known(library.elf, out);
  }
  out.definitive = row->definitive || (out.known_count != 0 && !knows(out, arch->cc));
  if (out.definitive) return true;
  // The library knows the architecture, so the error is about something else; or it has no list.
  constexpr int kCompilation = 6;
  return out.known_count == 0 && !(layer == Layer::nvrtc && call.code == kCompilation);
}

}  // namespace kshim::shim
