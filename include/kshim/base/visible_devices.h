// SPDX-License-Identifier: Apache-2.0
// CUDA_VISIBLE_DEVICES as the driver reads it. Source: CUDA Programming Guide, "CUDA Environment Variables".
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace kshim {

struct VisibleDevices {
  std::vector<std::size_t> shown;  ///< positions, in the order of the list
  std::string_view stranger;       ///< the entry that names no device, at which the list ends; empty: none
  bool twice = false;              ///< a device is named twice: none is visible then (assumed)
};

/// `find(item)`: the position of the device that an entry (an index, a UUID or its beginning) names, or
/// nothing. Views point into `value`.
template <class Find>
VisibleDevices read_visible_devices(std::string_view value, const Find& find) {
  VisibleDevices out;
  while (!value.empty()) {
    std::string_view item = value.substr(0, value.find(','));
    value.remove_prefix(std::min(item.size() + 1, value.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    const std::optional<std::size_t> device = find(item);
    if (!device) {
      out.stranger = item;
      break;
    }
    out.twice = out.twice || std::find(out.shown.begin(), out.shown.end(), *device) != out.shown.end();
    out.shown.push_back(*device);
  }
  if (out.twice) out.shown.clear();
  return out;
}

}  // namespace kshim
