// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/about.h"
#include "analyzer/render/sentences.h"

namespace kshim::render {
using core::Cause;

namespace {

constexpr std::size_t kNamed = 3;

// "sm_80, sm_86 and 4 more"
std::string shortened(const std::vector<std::string>& archs) {
  if (archs.size() <= kNamed) return core::enumerate(archs);
  const std::vector<std::string> shown(archs.begin(), archs.begin() + kNamed - 1);
  return fmt::format("{} and {} more", core::join(shown, ", "), archs.size() - shown.size());
}

std::vector<std::string> ptx_of(std::vector<std::string> archs) {
  std::erase_if(archs, [](const std::string& arch) { return !arch.starts_with("compute_"); });
  return archs;
}

// What contradicts what; empty where it is not known.
std::string values_of(const core::Finding& finding) {
  if (has_trait(finding.cause, core::cause_trait::code_missing) && !finding.have.empty() && finding.code &&
      finding.cause != Cause::arch_specific_image && finding.cause != Cause::kernel_missing_from_image)
    return finding.cause == Cause::ptx_newer_than_device ? shortened(ptx_of(finding.have))
                                                         : "only for " + shortened(finding.have);
  if (finding.about == nullptr) return {};
  const diagnose::Facts& about = *finding.about;
  const std::string driver =
      about.driver.cuda.known() ? fmt::format("driver for CUDA {}", name(about.driver.cuda)) : "";
  switch (finding.cause) {
    case Cause::ptx_newer_than_driver:
      if (about.images.ptx.known() && !driver.empty())
        return fmt::format("PTX {} against a {}", name(about.images.ptx), driver);
      if (about.images.ptx.known() && about.driver.reads.known())
        return fmt::format("PTX {} against a driver that reads {}", name(about.images.ptx),
                           name(about.driver.reads));
      break;
    case Cause::library_refuses:
      if (const auto least = about.call.said.find("min_any"); least != about.call.said.end() && about.gpu.cc)
        if (const auto arch = image::parse_arch(least->second); arch && *about.gpu.cc < arch->cc)
          return fmt::format("it asks for {}", name(arch->cc));
      break;
    case Cause::driver_too_old:
      if (about.driver.runtime.known() && about.driver.cuda < about.driver.runtime && !driver.empty())
        return fmt::format("CUDA {} against a {}", name(about.driver.runtime), driver);
      break;
    case Cause::nvrtc_arch_unsupported:
      if (about.call.compiler && about.call.compiler->asked.cc.major != 0) {
        const std::string asked = name(image::ImageKind::cubin, about.call.compiler->asked);
        const std::string& compiler = about.call.compiler->name;
        // A version that knows the architecture is not the one that refused it.
        const data::ToolkitRow* first = data::first_toolkit_for(about.call.compiler->asked);
        const data::ToolkitRow* last = data::last_toolkit_for(about.call.compiler->asked);
        const image::Version version = about.call.compiler->version;
        const bool knows =
            first != nullptr && last != nullptr && !(version < first->version) && !(last->version < version);
        // The headline of a log has the two.
        if (core::contains(finding.headline, "does not compile for"))
          return version.known() && !knows ? "it is of CUDA " + name(version) : std::string();
        if (version.known() && !knows && !compiler.empty())
          return fmt::format("{} against {} of CUDA {}", asked, compiler, name(about.call.compiler->version));
        return compiler.empty() ? asked : fmt::format("{} against {}", asked, compiler);
      }
      break;
    default:
      break;
  }
  return {};
}

}  // namespace

std::string with_values(std::string title, const core::Finding& finding) {
  const std::string values = values_of(finding);
  if (values.empty()) return title;
  return title + (values.starts_with("only ") ? ", " : ": ") + values;
}

}  // namespace kshim::render
