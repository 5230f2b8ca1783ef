// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/surroundings.h"

#include <fmt/core.h>

#include "analyzer/core/codes.h"

namespace kshim::analysis {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kInvalidHandle = 400;

std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

}  // namespace

std::optional<Match> driver_too_old(const Facts& facts) {
  if (!facts.has_code(kInsufficientDriver) || !facts.driver_found || !facts.driver.known())
    return std::nullopt;
  if (!facts.runtime.known())
    return Match{0.9,
                 fmt::format("The driver is one for CUDA {}: 35 means that the runtime needs a newer one",
                             name(facts.driver))};
  if (facts.runtime.major <= facts.driver.major) return std::nullopt;
  return Match{0.97, fmt::format("The runtime is of CUDA {}, and the driver is one for CUDA {}",
                                 facts.runtime.major, name(facts.driver))};
}

std::optional<Match> no_driver(const Facts& facts) {
  if (!facts.has_code(kInsufficientDriver) || facts.driver_found) return std::nullopt;
  return Match{
      0.85,
      "No libcuda.so.1 was loaded: there is no driver here, or a container was started without its GPU"};
}

std::optional<Match> foreign_handle(const Facts& facts) {
  if (!facts.has_code(kInvalidHandle) || !facts.first || facts.devices < 2) return std::nullopt;
  return Match{
      0.8, fmt::format("The process uses {} GPUs, and nothing had failed before: the stream, event or kernel "
                       "belongs to another of them",
                       facts.devices)};
}

std::optional<Match> refused_configuration(const Facts& facts) {
  if (facts.stage != "launch" || !facts.has_code(kInvalidValue)) return std::nullopt;
  if (!facts.device || facts.images.empty() ||
      select(facts.images, facts, facts.switches).choice == image::Choice::none)
    return std::nullopt;
  return Match{
      0.7,
      "An image fits, and the launch itself is refused as invalid: grid, block or shared memory are beyond "
      "what the GPU allows, or an argument is missing"};
}

std::optional<Match> fork_after_init(const Facts& facts) {
  if (!facts.has_code(kNotInitialized) || !facts.parent_initialised) return std::nullopt;
  return Match{
      0.9, "The process was forked from one that had initialised CUDA, and a driver does not survive that"};
}

}  // namespace kshim::analysis
