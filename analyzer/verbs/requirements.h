// SPDX-License-Identifier: Apache-2.0
// What files ask of a machine, in the words of those who place them on machines: `kshim export --to`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/verbs/scan.h"

namespace kshim::requirements {

enum class To : std::uint8_t { nvidia_require, nfd, wheel_variant, conda };

/// The GPUs that kshim knows and that the files run on.
struct Served {
  std::vector<image::ComputeCapability> known;  ///< ascending
  std::vector<bool> runs;                       ///< of each
  bool newer = false;                           ///< newer ones compile the PTX of every file
  std::vector<std::string> archs;               ///< "90_real", "120_virtual"
};
/// `scan` judged for all of known_gpus().
Served served_by(const scan::Scan& scan);
std::vector<image::Arch> known_gpus();
std::string text_of(const Served& served, To to);

/// What `declared` promises and the files do not keep, and the other way round; a line each, errors first.
struct Difference {
  std::vector<std::string> broken;  ///< promised, and nothing runs there
  std::vector<std::string> unused;  ///< runs there, and is not promised
};
/// UserError where the text is not of that kind.
Difference verify(const Served& served, To to, std::string_view declared);

}  // namespace kshim::requirements
