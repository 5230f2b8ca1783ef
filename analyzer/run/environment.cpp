// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/environment.h"

#include <unistd.h>

#include "analyzer/core/text.h"
#include "analyzer/data/cuda_versions.h"
#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/elf_file.h"

namespace kshim::run {
using core::UserError;
namespace exit_status = core::exit_status;

namespace {

bool is_entry_of(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

bool is_sanitizer_runtime(std::string_view path) {
  constexpr std::string_view kRuntimes[] = {"libasan.",   "liblsan.", "libtsan.",    "libubsan.",
                                            "libhwasan.", "libmsan.", "libclang_rt."};
  return std::ranges::any_of(
      kRuntimes, [&](std::string_view runtime) { return core::basename_of(path).starts_with(runtime); });
}

namespace fs = std::filesystem;

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

UserError wrong(std::string_view specification, std::string_view why) {
  return UserError(fmt::format("--simulate {}: {}", specification, why), exit_status::kRunFailed);
}

// A device has no suffix: sm_90a names code that runs on the 9.0 device, and that is what is simulated.
data::GpuChoice parse_device(std::string_view specification, std::string_view text) {
  try {
    return data::choose_gpu(text);
  } catch (const data::UnknownGpu& error) {
    throw wrong(specification, error.what());
  }
}

}  // namespace

Environment Environment::current() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.entries_.emplace_back(*entry);
  }
  return environment;
}

std::string_view Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_)
    if (is_entry_of(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  return {};
}

bool Environment::has(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const std::string& entry) { return is_entry_of(entry, name); });
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string text = fmt::format("{}={}", name, value);
  const auto entry = std::ranges::find_if(entries_, [&](const auto& row) { return is_entry_of(row, name); });
  if (entry != entries_.end())
    *entry = std::move(text);
  else
    entries_.push_back(std::move(text));
}

void Environment::prepend(std::string_view name, std::string_view value, char separator) {
  const std::string before(get(name));
  set(name, before.empty() ? std::string(value) : fmt::format("{}{}{}", value, separator, before));
}

void Environment::append(std::string_view name, std::string_view value, char separator) {
  const std::string before(get(name));
  set(name, before.empty() ? std::string(value) : fmt::format("{}{}{}", before, separator, value));
}

void Environment::remove(std::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return is_entry_of(entry, name); });
}

std::vector<char*> Environment::pointers() {
  std::vector<char*> pointers;
  pointers.reserve(entries_.size() + 1);
  for (std::string& entry : entries_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string merge_preload(std::string_view existing, std::string_view shim) {
  // ld.so(8): the entries may be separated by spaces or colons.
  std::vector<std::string> entries = core::split(existing, ": ");
  std::erase_if(entries, [&](const std::string& entry) {
    return entry.empty() || core::basename_of(entry) == core::basename_of(shim);
  });
  const auto rest = std::stable_partition(entries.begin(), entries.end(), is_sanitizer_runtime);
  entries.emplace(rest, shim);
  return core::join(entries, ":");
}

fs::path find_program(const std::string& name) {
  const std::optional<fs::path> program = name.empty() ? std::nullopt : device_code::search_path(name);
  if (program.has_value()) return *program;
  const bool has_slash = core::contains(name, '/');
  const std::optional<fs::path> other =
      has_slash ? std::optional<fs::path>(name)
                : (name.empty() ? std::nullopt : device_code::find_in_path(name, exists));
  if (!other.has_value()) {
    throw UserError(fmt::format("{}: not found in PATH", name.empty() ? "''" : name), exit_status::kNotFound);
  }
  std::error_code error;
  const fs::file_status status = fs::status(*other, error);
  if (status.type() == fs::file_type::not_found) {
    throw UserError(fmt::format("{}: no such file", other->string()), exit_status::kNotFound);
  }
  if (status.type() == fs::file_type::directory) {
    throw UserError(fmt::format("{}: is a folder, not a program", other->string()),
                    exit_status::kNotExecutable);
  }
  if (error) {
    throw UserError(fmt::format("{}: {}", other->string(), error.message()), exit_status::kNotExecutable);
  }
  throw UserError(fmt::format("{}: not executable; `chmod +x` it, or name its interpreter", other->string()),
                  exit_status::kNotExecutable);
}

namespace {

/// A driver that knows the GPU: not older than the first, nor newer than the last of its generation.
void check_driver(std::string_view specification, image::ComputeCapability cc, image::Version driver) {
  const data::GpuRow* gpu = data::find_gpu(cc);
  if (gpu == nullptr) return;
  const auto text = [](image::Version version) { return std::string(image::to_name(version).view()); };
  if (driver < gpu->first_toolkit)
    throw wrong(
        specification,
        fmt::format("a driver for CUDA {} does not know compute capability {}; the first that does is for {}",
                    text(driver), image::to_name(cc).view(), text(gpu->first_toolkit)));
  const image::Version last = last_driver_cuda(*gpu);
  if (last.known() && driver > last)
    throw wrong(
        specification,
        fmt::format(
            "a driver for CUDA {} no longer drives compute capability {}; the last that does is for {}",
            text(driver), image::to_name(cc).view(), text(last)));
}

}  // namespace

Simulation parse_simulations(const std::vector<std::string>& specifications) {
  Simulation simulation;
  std::vector<image::ComputeCapability> capabilities;
  std::string with_driver;
  image::Version chosen;
  for (const std::string& specification : specifications) {
    const std::vector<std::string> parts = core::split(specification, ",");
    const data::GpuChoice device = parse_device(specification, parts.front());
    std::string name = device.name;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string_view part = parts[i];
      const std::size_t equals = part.find('=');
      const std::string_view key = part.substr(0, equals);
      const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
      if (key == "driver") {
        const image::Version version = data::parse_driver(fmt::format("--simulate {}", specification),
                                                          std::string(value), exit_status::kRunFailed);
        if (version.major < 8) throw wrong(specification, "drivers are simulated from CUDA 8.0 on");
        const std::string driver(image::to_name(version).view());
        if (!simulation.driver.empty() && simulation.driver != driver) {
          throw wrong(specification,
                      fmt::format("one machine has one driver, and it is {} already", simulation.driver));
        }
        simulation.driver = driver;
        chosen = version;
        with_driver = specification;
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
    capabilities.push_back(device.cc);
  }
  if (chosen.known()) {
    for (const image::ComputeCapability cc : capabilities) check_driver(with_driver, cc, chosen);
  }
  return simulation;
}

}  // namespace kshim::run
