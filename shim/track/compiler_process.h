// SPDX-License-Identifier: Apache-2.0
// This process where it is a compiler: ptxas, tileiras, nvcc, cicc, nvlink. They are ordinary programs, which
// inherit the preload. The shim does nothing in them until one ends with a status other than 0; then it
// records what was asked of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "guest/text_buffer.h"
#include "kshim/report/writer.h"
#include "report/report_file.h"

namespace kshim::shim {

/// In a constructor: finds out whether this process runs one.
void look_at_program() noexcept;
bool is_compiler_process() noexcept;

/// Architectures that an argument list names ("NAME\0NAME\0..."): the values of options such as -arch,
/// --gpu-name, -gencode.
class AskedArchs {
 public:
  static constexpr std::size_t kMax = 32;
  void read(std::string_view arguments) noexcept;
  std::span<const std::string_view> rows() const noexcept { return {rows_, count_}; }

 private:
  void add_names_in(std::string_view value) noexcept;
  std::string_view rows_[kMax];
  std::size_t count_;
};

/// Lies in zeroed memory.
class CompilerProcess {
 public:
  /// The record; `status` is not 0.
  void write(Report& report, std::uint64_t status) noexcept;

 private:
  void find_version() noexcept;
  void find_input_isa(std::string_view arguments) noexcept;
  void find_parents() noexcept;

  static constexpr std::size_t kMaxParents = 8;
  AskedArchs asked_;
  Text<16> version_;
  Text<16> input_isa_;
  char path_[4096];
  char arguments_[65536];
  char block_[65536];
  report::ProcessRow parents_[kMaxParents];
  char parent_paths_[kMaxParents][1024];
  std::size_t parent_count_;
};

}  // namespace kshim::shim
