// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "analyzer/core/text.h"

namespace kshim::core {
void set_up_log() {
  auto logger = spdlog::stderr_logger_st("kshim");
  logger->set_pattern("kshim: %l: %v");
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(logger);
  const char* wanted = std::getenv("KSHIM_LOG");
  if (wanted == nullptr || *wanted == '\0') return;
  for (const std::string_view level : {"off", "error", "warn", "info", "debug"})
    if (level == wanted) return logger->set_level(spdlog::level::from_str(wanted));
  spdlog::warn("KSHIM_LOG={} is none of off, error, warn, info, debug; warn is used", sanitize(wanted));
}

bool logs_debug() { return spdlog::should_log(spdlog::level::debug); }
void log_debug(std::string_view message) { spdlog::debug("{}", message); }

}  // namespace kshim::core
