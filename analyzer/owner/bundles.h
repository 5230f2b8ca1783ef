// SPDX-License-Identifier: Apache-2.0
// Programs that were frozen together with their libraries: no package manager knows these files any more.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/owner/package.h"

namespace kshim::packages {

enum class NamedBy : unsigned char { folder_above, nothing };
struct BundleRow {
  std::string_view maker;
  std::string_view title;
  std::string_view prefix;
  std::string_view suffix;
  std::string_view proof;
  NamedBy named_by;
  std::string_view source;
};
std::span<const BundleRow> bundles();

/// The bundle that a file lies in: its maker is the manager, the name may be empty.
std::optional<Package> bundle_of(const std::string& path);
/// "PyInstaller" of "pyinstaller"; empty for a manager that makes no bundles.
std::string_view bundle_title(std::string_view manager);

}  // namespace kshim::packages
