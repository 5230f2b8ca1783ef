// SPDX-License-Identifier: Apache-2.0
// Headers of the rpm database, made a tag at a time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::test {

class RpmBlob {
 public:
  RpmBlob& text(std::uint32_t tag, std::string_view value) {
    return add(tag, 6, 1, std::string(value) + '\0');
  }
  RpmBlob& texts(std::uint32_t tag, const std::vector<std::string>& values) {
    std::string heap;
    for (const std::string& value : values) heap += value + '\0';
    return add(tag, 8, static_cast<std::uint32_t>(values.size()), heap);
  }
  RpmBlob& numbers(std::uint32_t tag, const std::vector<std::uint32_t>& values) {
    std::string heap;
    for (const std::uint32_t value : values) heap += big(value);
    return add(tag, 4, static_cast<std::uint32_t>(values.size()), heap);
  }
  RpmBlob& add(std::uint32_t tag, std::uint32_t type, std::uint32_t count, std::string_view heap) {
    return entry(tag, type, static_cast<std::uint32_t>(heap_.size()), count, heap);
  }
  RpmBlob& entry(std::uint32_t tag, std::uint32_t type, std::uint32_t offset, std::uint32_t count,
                 std::string_view heap = "") {
    table_ += big(tag) + big(type) + big(offset) + big(count);
    heap_ += heap;
    return *this;
  }
  std::string blob() const {
    return big(static_cast<std::uint32_t>(table_.size() / 16)) +
           big(static_cast<std::uint32_t>(heap_.size())) + table_ + heap_;
  }
  static std::string big(std::uint32_t value) {
    std::string out;
    for (int shift = 24; shift >= 0; shift -= 8)
      out += static_cast<char>(value >> static_cast<unsigned>(shift));
    return out;
  }
  /// libfoo 1.4-7.el9 with two files.
  static RpmBlob libfoo() {
    RpmBlob out;
    return out.text(1000, "libfoo")
        .text(1001, "1.4")
        .text(1002, "7.el9")
        .numbers(1116, {1, 0})
        .texts(1117, {"libfoo.so.1", "libfoo.so.1"})
        .texts(1118, {"/opt/foo/", "/usr/lib64/"});
  }

 private:
  std::string table_;
  std::string heap_;
};

}  // namespace kshim::test
