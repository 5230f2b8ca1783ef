// SPDX-License-Identifier: Apache-2.0
// Text written so that a reader of markup or of URIs takes it for text.
#pragma once
#include <string>
#include <string_view>

namespace kshim::analysis {

/// As HTML and XML 1.0 have it, in content and in quoted attributes. Characters that XML forbids are not its
/// concern: harmless() takes them out. What GitHub's runner would take for a command (no_command() in text.h)
/// is written so that it does not.
std::string escape_markup(std::string_view text);

/// RFC 3986: an absolute path as file:///a%20b, a relative one as a relative reference.
std::string file_uri(std::string_view path);

}  // namespace kshim::analysis
