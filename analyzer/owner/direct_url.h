// SPDX-License-Identifier: Apache-2.0
// What an installer notes of a distribution that came from no index: direct_url.json (PEP 610).
#pragma once
#include <string>
#include <string_view>

namespace kshim::packages {

/// How a source begins that is installed editable.
inline constexpr std::string_view kEditable = "-e ";

/// What `pip install` takes to build the same again: "-e /src/vllm" of an editable installation, "/src/vllm"
/// of a folder, "git+https://github.com/o/r@COMMIT#subdirectory=x" of a repository. Empty for a finished
/// wheel or an archive, for an address with anything in it that an address of these kinds does not have, and
/// for no JSON. A name or password in the address is left out.
std::string source_of_direct_url(std::string_view json);

/// Whether a text, of a report, is of the shape of these.
bool is_source(std::string_view text);

/// The folder of such a source; empty where it is a repository.
std::string folder_of_source(std::string_view source);

}  // namespace kshim::packages
