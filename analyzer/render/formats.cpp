// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/render.h"

namespace kshim::render {
namespace {

constexpr std::array<std::string_view, kFormats.size()> kNames = {
#define KSHIM_FORMAT(id, writer) #id,
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
};

}  // namespace

std::optional<Format> parse_format(std::string_view name, std::span<const Format> of) {
  for (const Format format : of)
    if (kNames.at(static_cast<std::size_t>(format)) == name) return format;
  return std::nullopt;
}

std::string format_names(std::span<const Format> of) {
  return core::join(
      core::mapped(of,
                   [](Format format) { return std::string(kNames.at(static_cast<std::size_t>(format))); }),
      ", ");
}

std::string rendered(const verbs::Analysis& analysis, Format format, const RenderOptions& options) {
  switch (format) {
#define KSHIM_FORMAT(id, writer) \
  case Format::id:               \
    return render_##writer(analysis, format, options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
  }
  return {};
}

}  // namespace kshim::render
