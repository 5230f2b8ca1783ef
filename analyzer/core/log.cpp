// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> kLevels = {{
    {"off", spdlog::level::off},
    {"error", spdlog::level::err},
    {"warn", spdlog::level::warn},
    {"info", spdlog::level::info},
    {"debug", spdlog::level::debug},
}};

}  // namespace

void set_up_log() {
  auto logger = spdlog::stderr_logger_st("kshim");
  logger->set_pattern("kshim: %l: %v");
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(logger);
  const char* wanted = std::getenv("KSHIM_LOG");
  if (wanted == nullptr || *wanted == '\0') return;
  for (const auto& [name, level] : kLevels) {
    if (name != wanted) continue;
    logger->set_level(level);
    return;
  }
  spdlog::warn("KSHIM_LOG={} is none of off, error, warn, info, debug; warn is used", sanitize(wanted));
}

bool logs_debug() { return spdlog::should_log(spdlog::level::debug); }
void log_debug(std::string_view message) { spdlog::debug("{}", message); }

}  // namespace kshim::analysis
