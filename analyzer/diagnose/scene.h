// SPDX-License-Identifier: Apache-2.0
// One report with all that is needed to judge it, and what one finding is about.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/core/facts.h"
#include "analyzer/diagnose/file_gaps.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/diagnose/module_images.h"
#include "analyzer/diagnose/options.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::analysis {

struct Scene {
  const Report& report;
  const ReportIndex& index;
  ObjectFiles& files;
  const Options& options;
  Advised& advised;
  FileGaps& file_gaps;
  bool parent_initialised = false;  ///< the process is the child of one that had initialised CUDA
};

/// Device code on a device, and what the rules see of it. Pointers are into the scene's report.
struct Subject {
  const ObjectRecord* object = nullptr;
  const ModuleRecord* module = nullptr;
  const GapRecord* gap = nullptr;
  const DeviceRecord* device = nullptr;
  ModuleImages images;
  Facts facts;
  std::optional<CachedCode> cached;  ///< where a cache of this machine holds the image
  std::optional<PackageRecord>
      caller;  ///< of a compiler's failure and a refused driver's: the Python package whose file called
};

Subject subject_of(const Scene& scene, const FailureRecord& failure);
/// What the module of a gap lacks for a compute capability. No codes: nothing ran into it.
Subject subject_of(const Scene& scene, const GapRecord& gap, image::ComputeCapability cc);

/// The compute capability of a device record, or the assumed one.
std::optional<image::ComputeCapability> cc_of(const Scene& scene, const DeviceRecord* device);
image::Version driver_of(const Scene& scene);
image::JitSwitches switches_of(const Report& report);
/// Names of the switches that are on.
std::vector<std::string> switch_names(const Report& report);
/// Whether the program came to its own end, as far as is known.
bool ended_well(const Scene& scene);
/// "GPU 0: NVIDIA H100 (9.0)".
/// nullopt where nothing is known of it.
std::optional<Device> device_of(const Scene& scene, const DeviceRecord* device);
/// "report.jsonl:4"; empty for line 0.
ReportLine location(const Report& report, std::uint32_t line);
/// Basename of the object's file, else "the image" of a loose one.
std::string object_text(const Subject& subject);

}  // namespace kshim::analysis
