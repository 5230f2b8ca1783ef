// SPDX-License-Identifier: Apache-2.0
// Mangled names refer back to their own parts: 10 more bytes of one make it twice as long to read, so that
// 300 bytes would fill any memory. abi::__cxa_demangle() writes all of it before it returns. What libstdc++
// has beneath hands over piece by piece and can be stopped; it is in the archive only
// (analysis/CMakeLists.txt).

#include "analyzer/core/text.h"

#if KSHIM_BOUNDED_DEMANGLE
extern "C" int __gcclibcxx_demangle_callback(  // NOLINT(bugprone-reserved-identifier): libstdc++'s
    const char* mangled, void (*piece)(const char* text, std::size_t size, void* data), void* data);
#else
#include <cxxabi.h>

#endif

namespace kshim::core {
namespace {

constexpr std::size_t kMaxSymbolLength = 65536;

#if KSHIM_BOUNDED_DEMANGLE
// The longest names of real kernels are 10 times their symbol.
constexpr std::size_t kMinRoom = 16384;
constexpr std::size_t kRoomPerByte = 32;

struct TooLong {};

struct Sink {
  std::size_t room = 0;
  std::string text;
};

// Throws through the demangler's C, which works on its stack and has nothing to free.
void take_piece(const char* text, std::size_t size, void* data) {
  Sink& sink = *static_cast<Sink*>(data);
  if (size > sink.room - sink.text.size()) throw TooLong();
  sink.text.append(text, size);
}

std::string demangled_or_empty(const std::string& mangled) {
  Sink sink{kMinRoom + kRoomPerByte * mangled.size(), {}};
  try {
    if (__gcclibcxx_demangle_callback(mangled.c_str(), take_piece, &sink) == 0) return std::move(sink.text);
  } catch (const TooLong&) {
    return {};
  }
  return {};
}
#else
std::string demangled_or_empty(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name ? name.get() : "";
}
#endif

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};
using Known = std::unordered_map<std::string, std::string, Hash, std::equal_to<>>;

// A thousand reports of one run name the same kernels. At most 40 MB a thread, as a rule below one.
constexpr std::size_t kMaxKnown = 2048;
constexpr std::size_t kMaxKnownLength = 2048;
constexpr std::size_t kMaxNameLength = 16384;

}  // namespace

std::string demangle(std::string_view symbol) {
  std::string mangled(symbol);
  if (!symbol.starts_with("_Z") || symbol.size() > kMaxSymbolLength) return mangled;
  thread_local Known known;
  if (const auto found = known.find(symbol); found != known.end()) return found->second;
  std::string name = demangled_or_empty(mangled);
  if (name.empty()) name = mangled;
  if (symbol.size() <= kMaxKnownLength && name.size() <= kMaxNameLength) {
    if (known.size() == kMaxKnown) known.clear();
    known.emplace(std::move(mangled), name);
  }
  return name;
}

}  // namespace kshim::core
