// SPDX-License-Identifier: Apache-2.0
// The KSHIM_* variables. They are parsed once: by the shim's constructor, or earlier if another library's
// constructor looks up CUDA.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kshim/image/arch.h"
#include "kshim/report/redact.h"

namespace kshim::shim {

enum class LogLevel : std::uint8_t { off, error, warn, info, debug };

struct Options {
  bool enabled = true;  ///< false: every hook passes through, nothing is recorded, nothing is printed
  bool coverage = false;
  bool each_repeat = false;  ///< KSHIM_REPEATS=each
  bool patch_table = false;  ///< KSHIM_PATCH_TABLE=1
  bool images = true;        ///< KSHIM_IMAGES is not 0
  bool driver_log = false;   ///< KSHIM_DRIVER_LOG=1
  bool native_stacks = true;
  bool python_stacks = true;
  LogLevel log = LogLevel::warn;
  unsigned mode = 0600;                    ///< KSHIM_MODE
  std::uint64_t max_bytes = 64ULL << 20U;  ///< KSHIM_MAX_BYTES
  std::uint64_t max_files = 65536;         ///< KSHIM_MAX_FILES
  std::uint64_t sample = 1;                ///< KSHIM_SAMPLE
  std::string_view programs{};             ///< KSHIM_PROGRAMS
  bool own_settings = false;               ///< read from /etc/kshim/options instead of the environment
  report::ArgumentDetail arguments = report::ArgumentDetail::names;  ///< KSHIM_ARGV
  bool is_private = false;                                           ///< KSHIM_PRIVATE is not 0
  std::string_view key_file{};                                       ///< of KSHIM_PRIVATE; empty with 1
  bool report_given = false;                                         ///< KSHIM_REPORT is set
  std::string_view report{};                                         ///< pattern
  std::string_view start_folder{};  ///< working directory when the process started; empty where unknown
  std::uint64_t start_device = 0;   ///< its file system; 0 where unknown
  std::string_view run_id{};        ///< KSHIM_RUN_ID of `kshim run`; no data() where unset
  std::string_view run_socket{};    ///< KSHIM_RUN_SOCKET of `kshim run`
  std::span<const image::Arch> targets{};
};

/// Does not change after the environment was first read. Its texts live as long as the process.
const Options& options() noexcept;

/// Parses `environment` ("NAME=value" strings, the last one nullptr) into `out`; `storage` keeps its texts.
/// For options() and the tests.
struct OptionsStorage {
  char text[12288] = {};
  std::size_t used = 0;
  image::Arch targets[32] = {};
  std::size_t target_count = 0;
  struct Complaint {
    std::string_view name, value, fallback;
  } complaints[8] = {};
  std::size_t complaint_count = 0;
};
void parse_options(const char* const* environment, OptionsStorage& storage, Options& out) noexcept;
/// The values that options() did not understand.
std::span<const OptionsStorage::Complaint> option_complaints() noexcept;
/// The same of /etc/kshim/options: lines of NAME=VALUE, # before a comment.
void begin_settings(Options& out) noexcept;
void parse_setting(std::string_view line, OptionsStorage& storage, Options& out) noexcept;

}  // namespace kshim::shim
