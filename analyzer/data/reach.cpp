// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/reach.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::data {
namespace {

using image::Version;

// On Windows a branch has some numbers after its own: 581 and 582 are of R580. The next branch is ten on.
constexpr unsigned kWithinBranch = 10;
// Drivers of today have three digits; what else stands there is a Jetson's, or no driver's.
constexpr unsigned kFirstBranch = 300;

// The toolkit release of a variant such as "cu118"; "cu12" is too coarse.
Version exact_cuda(std::string_view variant) {
  if (variant.size() != 5 || !variant.starts_with("cu")) return {};
  const int number = core::parse_number<int>(variant.substr(2)).value_or(0);
  return Version::from_cuda_number(number / 10 * 1000 + number % 10 * 10);
}

// Within a major version an older driver runs what is newer, since CUDA 11.
bool reaches(Version last, Version cuda) {
  return cuda.major >= 11 ? cuda.major <= last.major : !(last < cuda);
}

bool is_newer(std::string_view a, std::string_view b) { return compare_releases(a, b) > 0; }

}  // namespace

DriverSupport driver_support(const GpuRow& gpu, Version driver, std::string_view kernel_module) {
  const unsigned said = gpu.tegra ? 0 : branch_of(kernel_module);
  const unsigned branch = said < kFirstBranch ? 0 : said;
  if (branch == 0 && !driver.known()) return DriverSupport::unknown;
  const ToolkitRow* first = find_toolkit(gpu.first_toolkit);
  const bool old_branch = branch != 0 && first != nullptr && branch < branch_of(first->driver);
  if (old_branch || (driver.known() && driver < gpu.first_toolkit)) return DriverSupport::too_old;
  if (gpu.last_branch == 0) return DriverSupport::yes;
  const bool dropped =
      branch != 0 ? branch >= gpu.last_branch + kWithinBranch : last_driver_cuda(gpu) < driver;
  return dropped ? DriverSupport::too_new : DriverSupport::yes;
}

bool can_ever_run(std::optional<image::ComputeCapability> device, Version cuda) {
  const GpuRow* gpu = device ? find_gpu(*device) : nullptr;
  if (gpu == nullptr || !cuda.known()) return true;
  for (const JetpackRow& row : jetpacks())
    if (row.cc == gpu->cc) return !(row.last_cuda < cuda);
  return gpu->last_branch == 0 || reaches(last_driver_cuda(*gpu), cuda);
}

bool can_run(std::optional<image::ComputeCapability> device, Version driver, Version cuda) {
  return can_ever_run(device, cuda) && (!driver.known() || !cuda.known() || reaches(driver, cuda));
}

Version oldest_cuda_of(std::string_view distribution, std::string_view release) {
  const auto* row = first_row(source_needs(), [&](const SourceNeedRow& each) {
    return each.distribution == distribution && is_within(release, each.first, each.last);
  });
  return row == nullptr ? Version{} : row->oldest_cuda;
}

std::string_view first_beyond(std::string_view distribution, Version cuda) {
  std::string_view found;
  for (const SourceNeedRow& row : source_needs()) {
    if (row.distribution == distribution && cuda < row.oldest_cuda &&
        (found.empty() || is_newer(found, row.first)))
      found = row.first;
  }
  return found;
}

std::optional<SourceRelease> source_release_for(std::string_view distribution, std::string_view release,
                                                image::ComputeCapability cc, Version driver,
                                                std::string_view platform) {
  // A Jetson builds what was published for any Linux; for Windows, releases have ended that Linux has.
  if (!platform.starts_with("windows")) platform = kLinux;
  std::optional<SourceRelease> best;
  for (const WheelRow& row : wheels()) {
    const Version cuda = exact_cuda(row.variant);
    const ToolkitRow* toolkit = cuda.known() ? find_toolkit(cuda) : nullptr;
    if (row.distribution != distribution || row.platform != platform || toolkit == nullptr ||
        row.last == "0" || !builds_for(*toolkit, {cc, image::Suffix::none}) || !can_run(cc, driver, cuda))
      continue;
    const bool same = is_within(release, row.first, row.last);
    const bool better = !best                               ? true
                        : best->same != same                ? same
                        : is_newer(row.last, best->release) ? true
                        : is_newer(best->release, row.last) ? false
                                                            : best->cuda < cuda;
    if (better) best = SourceRelease{std::string(row.last), cuda, &row, same};
  }
  if (best && best->same) best->release = release;
  return best;
}

}  // namespace kshim::data
