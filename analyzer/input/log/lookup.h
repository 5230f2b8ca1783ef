// SPDX-License-Identifier: Apache-2.0
// Which error of CUDA's a number, a name or a message is, also as people misquote it.
#pragma once

#include "analyzer/data/tables.h"
#include "kshim/base/cuda_error.h"

namespace kshim::input {

using OldCode = data::OldCodeRow;
/// nullptr for a number that was the same before CUDA 10.1, or none.
const OldCode* find_old_code(int number);

/// "209", "0xd1": a decimal or hexadecimal number and nothing else.
std::optional<int> parse_number(std::string_view text);

/// The same with words around it that say no more: "error code 209", "#209".
std::optional<int> bare_number(std::string_view text);

struct NamedError {
  const CudaError* error = nullptr;
  std::string really;    ///< the name in the headers, where the one given stands in none
  bool guessed = false;  ///< found by likeness, in no table
};
/// By the driver's or the runtime's name, without case, or as people misquote it. `error` is nullptr where
/// nothing is near enough.
NamedError find_by_name(std::string_view name);

/// Messages of cudaGetErrorString that mean CUDA wherever they stand, as one pattern; and the error of
/// what it found.
std::string message_pattern();
/// Those of all errors, which are about CUDA beside one of its calls: "out of memory".
std::string every_message_pattern();
const CudaError* find_by_message(std::string_view text);
/// The error whose message `text` begins with, of all there are; nullptr for none.
const CudaError* find_whole_message(std::string_view text);

/// Every name that one could have meant: for "did you mean".
std::vector<std::string> nearest_names(std::string_view name, std::size_t most);

}  // namespace kshim::input
