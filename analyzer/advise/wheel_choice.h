// SPDX-License-Identifier: Apache-2.0
// Which published build of a package serves a GPU or a driver, by the tables of knowledge/.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/about.h"

namespace kshim::advise {

struct WheelChoice {
  const data::WheelRow* row = nullptr;
  const data::InstallerRow* installer = nullptr;  ///< never nullptr in what is chosen
  std::string pin;                                ///< "==2.9.1", "==2.5.*" or nothing: for the newest
  bool same = false;                              ///< the release that is installed
  std::string release;                            ///< which it is; empty: the newest
};
/// "conda", else "pip".
const char* manager_of(const diagnose::Facts& at);
/// The row of a build, for the platform of the situation.
const data::WheelRow* row_of(const diagnose::Facts& at, const data::WheelName& wheel);
/// Of the release that is there, else of the nearest that has code for the GPU, which is known (newer ones
/// before older ones), and the newest where none is known to be there; machine code before PTX, and the
/// oldest CUDA of these, which runs on most drivers. nullopt where no row serves it. Where any that serves
/// has a wheel for the Python of the situation, or code for its other GPUs, such a one. `variants`: the only
/// ones that count, where there are any. `manager`: in place of that of the situation.
std::optional<WheelChoice> choose_wheel(const diagnose::Facts& at, const data::WheelName& wheel,
                                        image::Version driver,
                                        const std::vector<std::string_view>& variants = {},
                                        std::string_view manager = {});
/// A build that the driver runs; of the release that is there, where no GPU is known. nullopt where none is.
std::optional<WheelChoice> choose_wheel_for_driver(const diagnose::Facts& at, const data::WheelName& wheel);
/// The row of what is installed, where it has machine code for the GPU by the table and nothing read from the
/// thing itself says otherwise: then something else is what fails.
const data::WheelRow* serving_already(const diagnose::Facts& at);

/// What package the failing file, or what is named in its place, is of; empty distribution where no row knows
/// it.
data::WheelName wheel_of(const diagnose::Facts& at);
/// That of the machine, where it is known; else one of the CUDA that the log names, or of the first one for
/// the GPU: what asks for a newer driver may not start.
image::Version likely_driver(const diagnose::Facts& at);
/// Of a variant: 12.6 of "cu126" and "cuda12.6", 12.0 of "cuda12x" and "cu12"; unknown where it names none.
image::Version cuda_of(std::string_view variant);
/// Within a CUDA major version, an older driver runs what is newer.
bool runs_on(const data::WheelRow& row, image::Version driver);

}  // namespace kshim::advise
