// SPDX-License-Identifier: Apache-2.0
#include "device/product.h"

namespace kshim::sim {
namespace {

/// Single to double precision throughput (Programming Guide, "Arithmetic Instructions").
int fp64_ratio(unsigned cc) noexcept {
  switch (cc) {
    case 35:
    case 37:
      return 3;
    case 60:
    case 62:
    case 70:
    case 72:
    case 80:
    case 90:
    case 100:
      return 2;
    case 30:
    case 32:
      return 24;
    case 103:
    case 110:
    case 101:
    case 86:
    case 87:
    case 88:
    case 89:
    case 120:
    case 121:
      return 64;
    default:
      return 32;
  }
}

}  // namespace

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
