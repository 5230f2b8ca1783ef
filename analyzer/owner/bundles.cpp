// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/bundles.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "analyzer/core/text.h"

namespace kshim::packages {
namespace {

constexpr BundleRow kRows[] = {
#define KSHIM_BUNDLE(maker, title, prefix, suffix, proof, named_by, source) \
  {#maker, title, prefix, suffix, proof, NamedBy::named_by, source},
#include "analyzer/owner/bundles.def"
#undef KSHIM_BUNDLE
};

bool fits(const BundleRow& row, std::string_view name, const std::string& folder) {
  if (!name.starts_with(row.prefix) || !name.ends_with(row.suffix)) return false;
  const bool whole = !row.proof.empty();
  if (whole ? name.size() != row.prefix.size() + row.suffix.size()
            : name.size() <= row.prefix.size() + row.suffix.size())
    return false;
  std::error_code error;
  return row.proof.empty() || std::filesystem::is_regular_file(folder + "/" + std::string(row.proof), error);
}

}  // namespace

std::span<const BundleRow> bundles() { return kRows; }

std::optional<Package> bundle_of(const std::string& path) {
  for (std::size_t begin = path.find('/'); begin != std::string::npos;) {
    const std::size_t end = path.find('/', begin + 1);
    if (end == std::string::npos) break;
    const std::string_view name = std::string_view(path).substr(begin + 1, end - begin - 1);
    for (const BundleRow& row : kRows) {
      if (!fits(row, name, path.substr(0, end))) continue;
      Package out;
      if (row.named_by == NamedBy::folder_above)
        out.name = analysis::basename_of(std::string_view(path).substr(0, begin));
      out.manager = row.maker;
      out.environment = path.substr(0, end);
      return out;
    }
    begin = end;
  }
  return std::nullopt;
}

std::string_view bundle_title(std::string_view manager) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const BundleRow& each) { return each.maker == manager; });
  return row == std::end(kRows) ? std::string_view() : row->title;
}

}  // namespace kshim::packages
