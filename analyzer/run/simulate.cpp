// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/simulate.h"

#include <fmt/core.h>

#include <string_view>

#include "analyzer/core/user_error.h"
#include "analyzer/data/gpu_names.h"
#include "kshim/image/arch.h"

namespace kshim::cli {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    parts.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(text);
  return parts;
}

UserError wrong(std::string_view specification, std::string_view why) {
  return UserError(fmt::format("--simulate {}: {}", specification, why), exit_status::kRunFailed);
}

// A device has no suffix: sm_90a names code that runs on the 9.0 device, and that is what is simulated.
explain::GpuChoice parse_device(std::string_view specification, std::string_view text) {
  try {
    return explain::choose_gpu(text);
  } catch (const explain::UnknownGpu& error) {
    throw wrong(specification, error.what());
  }
}

}  // namespace

Simulation parse_simulations(const std::vector<std::string>& specifications) {
  Simulation simulation;
  for (const std::string& specification : specifications) {
    const std::vector<std::string_view> parts = split(specification);
    const explain::GpuChoice device = parse_device(specification, parts.front());
    std::string name = device.name;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::size_t equals = parts[i].find('=');
      const std::string_view key = parts[i].substr(0, equals);
      const std::string_view value = equals == std::string_view::npos ? "" : parts[i].substr(equals + 1);
      if (key == "driver") {
        const auto version = image::parse_version(value);
        if (!version.ok()) throw wrong(specification, "driver= takes a CUDA version such as 12.4");
        const std::string driver(image::to_name(version.value()).view());
        if (!simulation.driver.empty() && simulation.driver != driver) {
          throw wrong(specification,
                      fmt::format("one machine has one driver, and it is {} already", simulation.driver));
        }
        simulation.driver = driver;
      } else if (key == "name") {
        if (value.empty() || value.find_first_of(";:") != std::string_view::npos) {
          throw wrong(specification, "name= takes a name without `;` and `:`");
        }
        name = value;
      } else {
        throw wrong(specification, fmt::format("`{}` is neither driver=X.Y nor name=N", parts[i]));
      }
    }
    if (!simulation.devices.empty()) simulation.devices += ';';
    simulation.devices += image::to_name(device.cc).view();
    if (!name.empty()) simulation.devices += ':' + name;
  }
  return simulation;
}

}  // namespace kshim::cli
