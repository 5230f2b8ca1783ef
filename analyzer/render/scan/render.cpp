// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render.h"

namespace kshim::scan {

std::string render(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options) {
  switch (format) {
#define KSHIM_FORMAT(id)     \
  case analysis::Format::id: \
    return render_##id(scan, options);
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT
  }
  return {};
}

}  // namespace kshim::scan
