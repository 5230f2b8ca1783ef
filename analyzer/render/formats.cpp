// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "analyzer/render/render.h"

namespace kshim::analysis {
namespace {

struct FormatRow {
  Format format;
  std::string_view name;
};
constexpr std::array kFormats = {
#define KSHIM_FORMAT(id) FormatRow{Format::id, #id},
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT
};

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  for (const FormatRow& row : kFormats) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

std::string_view format_names() {
  static const std::string names = [] {
    std::string out;
    for (const FormatRow& row : kFormats) {
      if (!out.empty()) out += ", ";
      out += row.name;
    }
    return out;
  }();
  return names;
}

std::string render(const Analysis& analysis, Format format, const RenderOptions& options) {
  switch (format) {
#define KSHIM_FORMAT(id) \
  case Format::id:       \
    return render_##id(analysis, options);
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT
  }
  return {};
}

}  // namespace kshim::analysis
