// SPDX-License-Identifier: Apache-2.0
// From clues to findings. The rules over images are those of reports (rules.h); here is what only logs
// have: the line that decides, what it says by itself, and rules over what stands beside it.
#pragma once

#include "analyzer/diagnose/facts.h"
#include "analyzer/input/log/clues.h"

namespace kshim::diagnose {

/// A cause that something speaks for.
struct CauseCandidate {
  core::Cause cause = core::Cause::unknown;
  double confidence = 0;
  std::string because;
};

/// A cause and what is known of the images and the GPU behind it.
struct Judgment {
  CauseCandidate suspect;
  Facts facts;
  const input::LogMatch* hit = nullptr;    ///< the line that decides
  const input::ImageList* list = nullptr;  ///< whose images were judged
  const input::DeviceMention* device = nullptr;
  std::vector<CauseCandidate> others;     ///< of other lines, later in the log
  std::optional<CauseCandidate> earlier;  ///< a warning before it
  std::string went_on;  ///< why the program survived it, as a sentence; empty where it did not
  const input::Death* death = nullptr;  ///< what it died of instead
  std::string harmless;  ///< why the only thing that was said is wrong; then `hit` is no failure
};

/// `assumed`: the options have replaced what the log says.
Judgment judge(const input::LogFacts& clues, bool is_brief);

/// Rules over the surroundings of the deciding line; the image rules' facts are given as judged so far.
std::vector<CauseCandidate> candidates_from_context(const input::LogFacts& clues, const input::LogMatch& hit,
                                                    const Facts& facts);

/// A library of a release that, by its maker's own list, does not serve the GPU.
std::optional<CauseCandidate> library_without(const input::LogFacts& clues, image::ComputeCapability device);

/// Nothing of a driver is there, and something shows that there is none.
bool shows_no_driver(const input::LogFacts& clues);
/// "9.43 GiB".
std::string memory_text(std::uint64_t bytes);
/// "2.4.1+cu121", with +cuNNN where the log does not say which CUDA it is for; empty without a release.
std::string torch_build_of(const input::LogFacts& clues);

/// The hit of the table messages on the deciding line that speaks for the cause; nullptr where none does.
const input::LogMatch* message_behind(const input::LogFacts& clues, const Judgment& judgment);
/// For Finding::about.
/// What pip calls the package with the missing library, and its folder there, as words of fixes. `cuda`: the
/// major version of what asks for it; 0: not known.
void say_library_wheel(Facts& at, unsigned cuda);

std::shared_ptr<const Facts> facts_about(const input::LogFacts& clues, const Judgment& judgment,
                                         const core::Finding& finding);

}  // namespace kshim::diagnose
