// SPDX-License-Identifier: Apache-2.0
// Which published build of a package serves a GPU or a driver, by the tables of knowledge/.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/about.h"

namespace kshim::advise {

struct WheelChoice {
  const WheelRow* row = nullptr;
  const InstallerRow* installer = nullptr;  ///< never nullptr in what is chosen
  std::string pin;                          ///< "==2.9.1", "==2.5.*" or nothing: for the newest
  bool same = false;                        ///< the release that is installed
  std::string release;                      ///< which it is; empty: the newest
};
/// Of the release that is there, else of the nearest that has code for the GPU (newer ones before older
/// ones), and the newest where none is known to be there; machine code before PTX, and the oldest CUDA of
/// these, which runs on most drivers. nullopt where no row serves it. `python`: "3.10", which has a wheel of
/// the newer release, where any that serves has one for it. `others`: GPUs that the build is to serve too, if
/// any does. `variants`: the only ones that count, where there are any.
std::optional<WheelChoice> choose_wheel(const WheelName& wheel, std::string_view manager,
                                        image::ComputeCapability device, std::string_view platform,
                                        image::Version driver, std::string_view python = {},
                                        const std::vector<image::ComputeCapability>& others = {},
                                        const std::vector<std::string_view>& variants = {});
/// A build that the driver runs; of the release that is there, where no GPU is known. nullopt where none is.
std::optional<WheelChoice> choose_wheel_for_driver(const WheelName& wheel, std::string_view manager,
                                                   std::optional<image::ComputeCapability> device,
                                                   std::string_view platform, image::Version driver,
                                                   std::string_view python = {});
/// The row of what is installed, where it has machine code for the GPU by the table and nothing read from the
/// thing itself says otherwise: then something else is what fails.
const WheelRow* serving_already(const Facts& at);

/// What package the failing file, or what is named in its place, is of; empty distribution where no row knows
/// it.
WheelName wheel_of(const Facts& at);
/// That of the machine, where it is known; else one of the CUDA that the log names, or of the first one for
/// the GPU: what asks for a newer driver may not start.
image::Version likely_driver(const Facts& at);
/// Of a variant: 12.6 of "cu126" and "cuda12.6", 12.0 of "cuda12x" and "cu12"; unknown where it names none.
image::Version cuda_of(std::string_view variant);
/// Within a CUDA major version, an older driver runs what is newer.
bool runs_on(const WheelRow& row, image::Version driver);

}  // namespace kshim::advise
