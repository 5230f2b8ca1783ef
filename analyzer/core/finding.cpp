// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/finding.h"

#include "analyzer/core/text.h"

namespace kshim::core {
namespace {

using namespace cause_trait;

constexpr CauseRow kCauses[] = {
#define KSHIM_CAUSE(id, name, severity, traits, when, headline, title) \
  {Cause::id, name, Severity::severity, traits, when, headline, title},
#include "analyzer/core/causes.def"
#undef KSHIM_CAUSE
};
constexpr std::string_view kFixKinds[] = {
#define KSHIM_FIX_KIND(id, name) name,
#include "analyzer/core/fix_kinds.def"
#undef KSHIM_FIX_KIND
};
constexpr std::string_view kEvidence[] = {
#define KSHIM_EVIDENCE(id, name, what) name,
#include "analyzer/core/evidence.def"
#undef KSHIM_EVIDENCE
};
struct AssumedRow {
  std::string_view name;
  std::string_view words;
};
constexpr AssumedRow kAssumed[] = {{"gpu", "the GPU"},
                                   {"cuda", "the CUDA of the program"},
                                   {"driver", "the driver, which has to be new enough"},
                                   {"system", "Linux"},
                                   {"package-manager", "the package manager"},
                                   {"python", "a Python that this release has a wheel for"}};
constexpr std::string_view kSeverities[] = {"none", "info", "warning", "error"};

}  // namespace

std::string_view to_name(Severity severity) { return kSeverities[static_cast<std::size_t>(severity)]; }
std::string_view to_name(Assumed what) { return kAssumed[static_cast<std::size_t>(what)].name; }
std::string_view words_of(Assumed what) { return kAssumed[static_cast<std::size_t>(what)].words; }
std::string_view to_name(Actor actor) {
  static constexpr std::string_view kNames[] = {"you", "admin", "maker"};
  return kNames[static_cast<std::size_t>(actor)];
}
Actor actor_of(std::string_view name) {
  for (const Actor each : {Actor::admin, Actor::maker})
    if (name == to_name(each)) return each;
  return Actor::you;
}
std::string_view words_of(Actor actor) {
  static constexpr std::string_view kWords[] = {"you", "admin of the host", "maker of the program"};
  return kWords[static_cast<std::size_t>(actor)];
}
std::span<const CauseRow> causes() { return kCauses; }
const CauseRow& row_of(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }
std::string_view to_name(EvidenceId id) { return kEvidence[static_cast<std::size_t>(id)]; }

std::string ReportLine::text() const { return line == 0 ? file : fmt::format("{}:{}", file, line); }

std::string PackageName::label() const { return version.empty() ? name : name + " " + version; }

std::string PackageName::text() const {
  return label() + (installer.empty() ? "" : fmt::format(" ({})", installer));
}

std::string text_of(const Device& device) {
  const std::string cc = device.cc ? name(*device.cc) : std::string("?");
  switch (device.kind) {
    case Device::Kind::assumed:
      return fmt::format("an assumed GPU ({})", cc);
    case Device::Kind::target:
      if (!device.cc) return "a target";
      return fmt::format("target {}", sm_name(*device.cc));
    case Device::Kind::named:
      return device.name.empty() ? fmt::format("compute capability {}", cc)
                                 : fmt::format("{} ({})", device.name, cc);
    case Device::Kind::present:
      break;
  }
  if (!device.ordinal) return fmt::format("a GPU of compute capability {}", cc);
  return fmt::format("GPU {}: {} ({}{})", *device.ordinal, device.name.empty() ? "unnamed" : device.name, cc,
                     device.simulated ? ", simulated" : "");
}

Device target_device(std::optional<image::ComputeCapability> cc) {
  Device out;
  out.kind = Device::Kind::target;
  out.cc = cc;
  return out;
}

std::string_view to_name(FixKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kFixKinds) ? kFixKinds[index] : std::string_view();
}

}  // namespace kshim::core
