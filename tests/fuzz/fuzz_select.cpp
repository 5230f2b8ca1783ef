// SPDX-License-Identifier: Apache-2.0
// The choice of an image: any list, any device, any driver, any switches. What must always hold is checked,
// and the names of architectures and versions are read from the same bytes.
#include <algorithm>
#include <vector>

#include "fuzz_target.h"
#include "kshim/image/select.h"

using namespace kshim;
using namespace kshim::image;

namespace {

constexpr std::size_t kHeader = 6;     // bytes: device, driver, switches
constexpr std::size_t kCandidate = 4;  // bytes: kind and suffix, architecture, PTX ISA

std::uint16_t number_at(Bytes bytes, std::size_t at) { return read_le<std::uint16_t>(bytes, at).value_or(0); }

Platform platform_of(Bytes input) {
  Platform platform;
  platform.device = ComputeCapability::from_number(number_at(input, 0) % 200U);
  const unsigned driver = number_at(input, 2) % 160U;  // 0.0 to 15.9
  platform.driver = {static_cast<std::uint16_t>(driver / 10), static_cast<std::uint16_t>(driver % 10)};
  const unsigned switches = number_at(input, 4);
  platform.jit = {(switches & 1) != 0, (switches & 2) != 0, (switches & 4) != 0, (switches & 8) != 0,
                  (switches & 16) == 0};
  return platform;
}

Candidate candidate_of(Bytes input, std::size_t at) {
  const auto first = static_cast<unsigned>(input[at]);
  const auto isa = static_cast<unsigned>(input[at + 3]);
  return {static_cast<ImageKind>(first % 3),
          {ComputeCapability::from_number(10U + static_cast<unsigned>(input[at + 1])),
           static_cast<Suffix>(first / 3 % 3)},
          {static_cast<std::uint16_t>(isa / 10), static_cast<std::uint16_t>(isa % 10)}};
}

void check(const std::vector<Candidate>& images, const Platform& platform, const Selection& chosen) {
  const auto fits = [&](const Candidate& image) { return judge(image, platform).fits; };
  if (chosen.choice == Choice::none) {
    fuzz::require(std::none_of(images.begin(), images.end(), fits), "an image that fits is taken");
    fuzz::require(chosen.error == 209 || chosen.error == 218 || (chosen.error >= 221 && chosen.error <= 223),
                  "a refusal has one of the driver's codes");
  } else {
    fuzz::require(chosen.index < images.size() && fits(images[chosen.index]), "what is taken fits");
    fuzz::require(chosen.error == 0, "a choice is no error");
    const bool sass = chosen.choice == Choice::sass;
    fuzz::require(images[chosen.index].kind == (sass ? ImageKind::cubin : ImageKind::ptx),
                  "the choice says what was taken");
    for (const Candidate& image : images)
      fuzz::require(sass || image.kind != ImageKind::cubin || !fits(image), "SASS comes before PTX");
  }
  fuzz::require(rule_text(chosen.rule).id[0] != '\0', "a choice names its rule");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  const std::string_view text = text_of(input);
  if (const auto arch = parse_arch(text))
    fuzz::require(*parse_arch(to_name(ImageKind::cubin, *arch).view()) == *arch, "names lead back");
  if (const auto version = parse_version(text))
    fuzz::require(*parse_version(to_name(*version).view()) == *version, "versions lead back");
  if (size < kHeader) return 0;
  const Platform platform = platform_of(input);
  std::vector<Candidate> images;
  for (std::size_t at = kHeader; at + kCandidate <= size && images.size() < 64; at += kCandidate)
    images.push_back(candidate_of(input, at));
  const Selection chosen = select_image(images, platform);
  check(images, platform, chosen);
  check(images, platform, select_image(images, platform, Packaging::loose));
  std::vector<Candidate> reversed(images.rbegin(), images.rend());
  const Selection other = select_image(reversed, platform);
  fuzz::require(other.choice == chosen.choice && other.error == chosen.error, "the order does not matter");
  if (chosen.choice != Choice::none)
    fuzz::require(reversed[other.index].arch == images[chosen.index].arch,
                  "nor does it for the architecture");
  return 0;
}
