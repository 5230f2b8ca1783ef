// SPDX-License-Identifier: Apache-2.0
// Arguments that several commands take: GPUs, versions, formats.
#pragma once

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/data/cuda_versions.h"

namespace kshim::cli {

/// "sm_86,12.0", "8.6;12.0" and "H100,RTX 5090", each text a list. UserError with `status` for what is
/// neither an architecture that kshim knows nor the name of one GPU; `option` is its name in the message.
std::vector<image::Arch> parse_archs(std::string_view option, const std::vector<std::string>& texts,
                                     int status = core::exit_status::kMisuse);
/// "8.6", "sm_86" or "RTX 3090": one compute capability. UserError otherwise.
image::ComputeCapability parse_cc(std::string_view option, const std::string& text);
/// --root: the folder without links. UserError for what is none.
std::filesystem::path parse_root(const std::string& name);
/// What --assume-cc, --assume-driver and --assume-toolkit say; empty: nothing.
struct Assumptions {
  std::string cc, driver, toolkit;
  void add_to(Arguments& arguments) {
    arguments.add("--assume-cc", cc);
    arguments.add("--assume-driver", driver);
    arguments.add("--assume-toolkit", toolkit);
  }
  template <class Options>
  void apply(Options& to) const {
    if (!cc.empty()) to.assume_cc = parse_cc("--assume-cc", cc);
    if (!driver.empty()) to.assume_driver = data::parse_driver("--assume-driver", driver);
    if (!toolkit.empty()) to.assume_toolkit = data::parse_cuda_version("--assume-toolkit", toolkit);
  }
};

/// For what is written there: colors and the terminal's width where a person looks.
render::RenderOptions render_options(const Output& output, const Written& written);

}  // namespace kshim::cli
