// SPDX-License-Identifier: Apache-2.0
// How far a driver reaches, and the source of a project: which GPUs the one drives, and which CUDA the other
// is built with.
#pragma once

#include "analyzer/data/knowledge.h"

namespace kshim::data {

/// What a driver is to a GPU: by its branch where its kernel module is known, and by the CUDA that it is for.
enum class DriverSupport : unsigned char { unknown, yes, too_old, too_new };
DriverSupport driver_support(const GpuRow& gpu, image::Version driver, std::string_view kernel_module);

/// Whether a machine runs what a CUDA builds: its driver, the last branch for its GPU, and of a Jetson its
/// JetPack. What is not known forbids nothing.
bool can_run(std::optional<image::ComputeCapability> device, image::Version driver, image::Version cuda);
/// The same of the GPU alone, whatever driver is there now.
bool can_ever_run(std::optional<image::ComputeCapability> device, image::Version cuda);

/// Unknown where no row has the release.
image::Version oldest_cuda_of(std::string_view distribution, std::string_view release);
/// The first release whose source no longer takes this CUDA; empty where none is known.
std::string_view first_beyond(std::string_view distribution, image::Version cuda);

/// A release that was published for a CUDA whose nvcc has the GPU, so that its source builds with that one.
struct SourceRelease {
  std::string release;  ///< "2.7"
  image::Version cuda;  ///< 11.8
  const WheelRow* row = nullptr;
  bool same = false;  ///< the release asked for
};
/// The release itself where it can be, else the newest that can; nullopt where the tables know of none.
std::optional<SourceRelease> source_release_for(std::string_view distribution, std::string_view release,
                                                image::ComputeCapability cc, image::Version driver,
                                                std::string_view platform);

}  // namespace kshim::data
