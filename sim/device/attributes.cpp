// SPDX-License-Identifier: Apache-2.0
#include "device/product.h"

namespace kshim::sim {

bool device_attribute(const Device& d, int attribute, int& value) noexcept {
  const Limits& l = d.limits;
  const Product& p = d.product;
  const unsigned cc = l.cc.number();
  switch (attribute) {
#define KSHIM_SIM_ATTRIBUTE(name, expression) \
  case CU_DEVICE_ATTRIBUTE_##name:            \
    value = static_cast<int>(expression);     \
    return true;
#include "device/attributes.def"
#undef KSHIM_SIM_ATTRIBUTE
    default:
      value = 0;
      return attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX;
  }
}

}  // namespace kshim::sim
