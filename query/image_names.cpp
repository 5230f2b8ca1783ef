// SPDX-License-Identifier: Apache-2.0
#include "query/image_names.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

namespace kshim::query {
namespace {

constexpr auto key_of(const image::Candidate& image) noexcept {
  return std::tuple(image.kind != image::ImageKind::cubin, image.kind, image.arch);
}

}  // namespace

void ImageNames::add(const image::Candidate& image) noexcept {
  image::Candidate* const end = images_ + count_;
  image::Candidate* at = std::lower_bound(
      images_, end, image,
      [](const image::Candidate& a, const image::Candidate& b) { return key_of(a) < key_of(b); });
  if (at != end && key_of(*at) == key_of(image)) return;
  more_ = more_ || count_ == kMax;
  if (count_ == kMax) return;
  std::copy_backward(at, end, end + 1);
  *at = image;
  ++count_;
}

void ImageNames::write(std::span<char> out) const noexcept {
  constexpr std::string_view kMore = " ...";
  bool more = more_;
  std::size_t size = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const image::ShortName name = to_name(images_[i].kind, images_[i].arch);
    if (size + 1 + name.size + kMore.size() >= out.size()) {
      more = true;
      break;
    }
    if (size != 0) out[size++] = ' ';
    std::memcpy(out.data() + size, name.text.data(), name.size);
    size += name.size;
  }
  if (more) {
    std::memcpy(out.data() + size, kMore.data(), kMore.size());
    size += kMore.size();
  }
  out[size] = '\0';
}

}  // namespace kshim::query
