// SPDX-License-Identifier: Apache-2.0
// How much of one report is kept in memory. The shim's own limits (docs/report-format.md) are far below; a
// report of gigabytes, by whomever it was written, is read to its end and kept up to here, and a note says
// what was left out.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/input/report/report.h"
#include "kshim/report/writer.h"

namespace kshim::analysis {

/// Records of one type that are kept, and bytes of memory for them.
struct RecordLimit {
  std::size_t records = 0;
  std::size_t bytes = 0;
};
/// Together 232 MiB. The arrays that hold the records may take twice their size while they grow.
RecordLimit limit_of(report::RecordType type);

// What a value takes on the heap, about.
constexpr std::size_t kNode = 48;  ///< of an entry of a map, or what an allocation costs besides its bytes
template <class T>
std::size_t heap_of(const T& /*value*/) {
  return 0;
}
inline std::size_t heap_of(const std::string& text) {
  constexpr std::size_t kInside = 15;  // libstdc++ keeps so much within the object
  return text.size() > kInside ? text.size() + 1 + kNode / 3 : 0;
}
inline std::size_t heap_of(const ImageEntry& image) {
  return heap_of(image.kind) + heap_of(image.arch) + heap_of(image.isa);
}
inline std::size_t heap_of(const Layer& layer) {
  return heap_of(layer.layer) + heap_of(layer.api) + heap_of(layer.name);
}
inline std::size_t heap_of(const NativeFrame& frame) {
  return heap_of(frame.object) + heap_of(frame.build_id) + heap_of(frame.symbol);
}
inline std::size_t heap_of(const PythonFrame& frame) { return heap_of(frame.file) + heap_of(frame.function); }
inline std::size_t heap_of(const ProcessEntry& process) { return heap_of(process.exe); }
inline std::size_t heap_of(const std::map<std::string, std::string>& variables) {
  std::size_t out = 0;
  for (const auto& [name, value] : variables)
    out += 2 * sizeof(std::string) + kNode + heap_of(name) + heap_of(value);
  return out;
}
template <class T>
std::size_t heap_of(const std::vector<T>& items) {
  std::size_t out = items.capacity() * sizeof(T);
  for (const T& item : items) out += heap_of(item);
  return out;
}
template <class T>
std::size_t heap_of(const std::optional<T>& value) {
  return value ? heap_of(*value) : 0;
}

/// The memory that a record takes, about: itself, its entry in an index, and what its fields hold on the
/// heap.
template <report::RecordType kType, class T>
std::size_t weight_of(const T& record) {
  std::size_t out = sizeof(record) + kNode;
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(of, field, kind, required, meaning) \
  if constexpr (kType == report::RecordType::of && requires { record.field; }) out += heap_of(record.field);
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  return out;
}

}  // namespace kshim::analysis
