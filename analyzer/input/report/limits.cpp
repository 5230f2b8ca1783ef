// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/limits.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace

RecordLimit limit_of(report::RecordType type) {
  using report::RecordType;
  switch (type) {
    case RecordType::process:
    case RecordType::driver:
    case RecordType::end:
    case RecordType::compiler:
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
    case RecordType::child:
      return {256, 2 * kMiB};
    case RecordType::package:
      return {16384, 8 * kMiB};
    case RecordType::coverage:
      return {std::size_t{1} << 18, 80 * kMiB};
  }
  return {};
}

}  // namespace kshim::analysis
