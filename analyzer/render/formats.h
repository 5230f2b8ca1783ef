// SPDX-License-Identifier: Apache-2.0
// Formats that commands write, and how.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::render {

enum class Format : std::uint8_t {
#define KSHIM_FORMAT(id, writer) id,
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
};
inline constexpr std::array kFormats = {
#define KSHIM_FORMAT(id, writer) Format::id,
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
};
/// nullopt for a name that is none of those formats.
std::optional<Format> parse_format(std::string_view name, std::span<const Format> of = kFormats);
/// "text, json": for messages and help.
std::string format_names(std::span<const Format> of = kFormats);

struct RenderOptions {
  bool color = false;    ///< ECMA-48 colors
  bool unicode = false;  ///< UTF-8 beyond ASCII may be written
  unsigned width = 80;
  bool verbose = false;
  bool whole_commands = false;  ///< of another shell than sh: a backslash at a line's end continues nothing
  bool full = false;            ///< do not shorten home, host and UUID in what is made to be shared
};

}  // namespace kshim::render
