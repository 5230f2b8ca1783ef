// SPDX-License-Identifier: Apache-2.0
// What files ask of a machine, in the words of those who place them on machines: `kshim export --to`.
#pragma once

#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

enum class To : std::uint8_t { nvidia_require, nfd, wheel_variant, conda };

/// The GPUs that kshim knows and that the files run on.
struct Served {
  std::vector<image::ComputeCapability> known;  ///< ascending
  std::vector<bool> runs;                       ///< of each
  std::vector<bool> compiled;                   ///< of each: from PTX, in part or all
  bool newer = false;                           ///< newer ones compile the PTX of every file
  image::Version cuda;  ///< of the oldest driver that compiles all of that PTX; unknown where none is needed
  image::Version runtime;          ///< the newest major version of a CUDA runtime that a file runs with
  std::vector<std::string> archs;  ///< "90_real", "120_virtual"
};
/// `scan` judged for all of known_gpus().
Served served_by(const Scan& scan);
std::vector<image::Arch> known_gpus();
std::string requirement_text(const Served& served, To to);

/// What a package, an image or the command line promises: all of `conditions` at a time.
struct Declaration {
  To to = To::conda;
  std::string source;                   ///< "lib.conda!info/index.json"
  std::vector<std::string> conditions;  ///< ">=7.5,<9.0"; of a wheel variant "90_real"
  std::vector<std::string> drivers;     ///< ">=12.8", on the CUDA version of the driver
};
/// From a text: "__cuda_arch >=7.5", NVIDIA_REQUIRE_ARCH="arch>=7.5", lines of `nvidia :: sm_arch ::
/// 90_real`, an artifact of Node Feature Discovery in JSON. UserError where it is not of that kind.
Declaration declaration_of(To to, std::string_view text);
/// Of a dependency of conda: `__cuda_arch >=7.5` and `__cuda >=12.8`, nothing of others.
void add_conda_spec(std::string_view spec, Declaration& declaration);
/// From what the files themselves say: variant.json of a wheel (PEP 825), info/index.json and
/// info/run_exports.json of a conda package, the variables of an image's configuration.
std::vector<Declaration> declared_by(const std::filesystem::path& path);

/// What is declared and the files do not keep, and the other way round.
struct Difference {
  std::vector<std::string> broken;  ///< promised, and nothing runs there: "7.5", "12.0 with CUDA 12.0"
  std::vector<std::string> unused;  ///< runs there, and is not promised
};
/// UserError for conditions that cannot be read.
Difference verify(const Served& served, const Declaration& declared);

}  // namespace kshim::verbs
