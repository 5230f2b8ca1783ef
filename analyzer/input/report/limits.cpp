// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/limits.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
// Of an entry of a map, or what an allocation costs besides its bytes.
constexpr std::size_t kNode = 48;

std::size_t heap_of(const std::string& text) {
  constexpr std::size_t kInside = 15;  // libstdc++ keeps so much within the object
  return text.size() > kInside ? text.size() + 1 + kNode / 3 : 0;
}
std::size_t heap_of(const ImageEntry& image) {
  return heap_of(image.kind) + heap_of(image.arch) + heap_of(image.isa);
}
std::size_t heap_of(const Layer& layer) {
  return heap_of(layer.layer) + heap_of(layer.api) + heap_of(layer.name);
}
std::size_t heap_of(const NativeFrame& frame) {
  return heap_of(frame.object) + heap_of(frame.build_id) + heap_of(frame.symbol);
}
std::size_t heap_of(const PythonFrame& frame) { return heap_of(frame.file) + heap_of(frame.function); }
template <class T>
std::size_t heap_of(const std::vector<T>& items) {
  std::size_t out = items.capacity() * sizeof(T);
  for (const T& item : items) out += heap_of(item);
  return out;
}
template <class... Parts>
std::size_t sum(const Parts&... parts) {
  return (std::size_t{0} + ... + heap_of(parts));
}

}  // namespace

RecordLimit limit_of(report::RecordType type) {
  using report::RecordType;
  switch (type) {
    case RecordType::process:
    case RecordType::driver:
    case RecordType::end:
    case RecordType::repeat:  // are counted with their failures
      return {1, 4 * kMiB};
    case RecordType::device:
      return {1024, 2 * kMiB};
    case RecordType::object:
      return {16384, 16 * kMiB};
    case RecordType::module:
      return {65536, 32 * kMiB};
    case RecordType::failure:
      return {4096, 32 * kMiB};
    case RecordType::read:
      return {4096, 16 * kMiB};
    case RecordType::gap:
      return {65536, 32 * kMiB};
    case RecordType::library:
      return {4096, 8 * kMiB};
    case RecordType::bypass:
      return {256, 2 * kMiB};
    case RecordType::package:
      return {16384, 8 * kMiB};
    case RecordType::coverage:
      return {std::size_t{1} << 18, 80 * kMiB};
  }
  return {};
}

std::size_t weight_of(const ProcessRecord& record) {
  std::size_t out = sizeof(record) + sum(record.shim, record.run, record.host, record.time, record.exe,
                                         record.cwd, record.argv);
  for (const auto& [name, value] : record.env)
    out += 2 * sizeof(std::string) + kNode + heap_of(name) + heap_of(value);
  return out;
}
std::size_t weight_of(const DriverRecord& record) {
  return sizeof(record) + sum(record.path, record.cuda_version, record.kernel_module);
}
std::size_t weight_of(const DeviceRecord& record) {
  return sizeof(record) + sum(record.name, record.compute_capability, record.uuid, record.pci);
}
std::size_t weight_of(const ObjectRecord& record) {
  return sizeof(record) + kNode + sum(record.path, record.build_id, record.runtime) +
         (record.images ? heap_of(*record.images) : 0);
}
std::size_t weight_of(const ModuleRecord& record) {
  return sizeof(record) + kNode + sum(record.content_hash, record.api, record.selected, record.toolkit);
}
std::size_t weight_of(const FailureRecord& record) {
  return sizeof(record) + kNode +
         sum(record.stage, record.kernel, record.layers, record.native, record.python, record.python_main,
             record.asked, record.compiler, record.known);
}
std::size_t weight_of(const ReadRecord& record) {
  return sizeof(record) + sum(record.api, record.native, record.python);
}
std::size_t weight_of(const GapRecord& record) {
  return sizeof(record) + sum(record.kernels, record.have, record.need);
}
std::size_t weight_of(const LibraryRecord& record) {
  return sizeof(record) + sum(record.soname, record.path, record.version, record.build_id);
}
std::size_t weight_of(const BypassRecord& record) {
  return sizeof(record) + sum(record.path, record.how, record.names);
}
std::size_t weight_of(const PackageRecord& record) {
  return sizeof(record) + sum(record.name, record.version, record.manager, record.build, record.channel,
                              record.environment, record.source);
}
std::size_t weight_of(const CoverageRecord& record) { return sizeof(record) + kNode + sum(record.kernel); }
std::size_t weight_of(const std::vector<NativeFrame>& frames) { return heap_of(frames); }
std::size_t weight_of(const std::vector<PythonFrame>& frames) { return heap_of(frames); }

}  // namespace kshim::analysis
