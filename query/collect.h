// SPDX-License-Identifier: Apache-2.0
// Gathers the fatbins of a file, and the cubins that stand among its data. Every byte is looked at once,
// however its ranges overlap.
#pragma once
#include <cstdint>

#include "kshim/image/fatbin_search.h"
#include "query/device_code.h"

namespace kshim::query {

struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  image::SectionRole role = image::SectionRole::data;  ///< fatbins, relocatable or data
};

/// The fatbin of a relocatable part: images [first, first + count).
struct CodePart {
  std::uint64_t offset = 0;
  std::uint32_t first = 0, count = 0;
};

class Collector {
 public:
  Collector(SourceFile& file, DeviceCode& out) noexcept : file_(file), out_(out) {}
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  /// All ranges, in the order of the file, so that modules and parts are sorted by offset.
  Reason collect(Array<CodeRange>& ranges) noexcept;
  const Array<CodePart>& parts() const noexcept { return parts_; }

 private:
  void walk(const CodeRange& range) noexcept;
  void search(const CodeRange& range) noexcept;
  /// The fatbin at `at`; returns where to go on, beyond `at`. In data, what only looks like the start of a
  /// fatbin is passed over.
  std::uint64_t add_fatbin(std::uint64_t at, const CodeRange& range) noexcept;
  std::uint64_t add_cubin(std::uint64_t at, const CodeRange& range) noexcept;
  bool add_image(const image::Image& entry) noexcept;
  void add_group(std::uint64_t at, std::uint32_t first, image::SectionRole role) noexcept;
  void fail(Reason reason) noexcept {
    if (reason_ == Reason::none) reason_ = reason;
  }
  SourceFile& file_;
  DeviceCode& out_;
  Array<CodePart> parts_;
  Reason reason_ = Reason::none;
  std::byte* window_ = nullptr;  ///< what is searched
  std::uint64_t kept_from_ = 0;  ///< memory below is given back
  std::uint64_t misread_ = 0;    ///< bytes of what was no cubin after all
};

}  // namespace kshim::query
