// SPDX-License-Identifier: Apache-2.0
// Writes hostile analyses and scans in every format into a folder, for formats_check.py to read with parsers
// that are not ours.
#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/render/render.h"
#include "analyzer/render/scan/render.h"
#include "hostile.h"
#include "tests/support/command_names.h"

using namespace kshim::test;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const RenderOptions options{.unicode = true};
  // As many as there are texts, so that every text stands in every place once.
  for (std::size_t shift = 0; shift < kshim::test::hostile_texts().size(); ++shift) {
    const auto analysis = kshim::test::hostile_analysis(shift);
    const auto scan = kshim::test::hostile_scan(shift);
    for (const Format format : kFormats) {
      const std::string name = format == Format::markdown ? "md"
                               : format == Format::junit  ? "xml"
                               : format == Format::text   ? "txt"
                                                          : format_names({&format, 1});
      const std::string number = std::to_string(shift) + "." + name;
      write(folder / ("analysis" + number), rendered(analysis, format, options));
      write(folder / ("scan" + number), rendered(scan, format, options));
    }
  }
  write(folder / "empty.xml", rendered(Analysis{}, Format::junit, options));
  write(folder / "empty.sarif", rendered(Analysis{}, Format::sarif, options));
  write(folder / "empty.html", rendered(Analysis{}, Format::html, options));
  return 0;
}
