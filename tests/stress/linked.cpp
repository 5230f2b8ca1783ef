// SPDX-License-Identifier: Apache-2.0
#include "linked.h"

#include <dlfcn.h>

#include "cuda/call_args.h"
#include "cuda/symbol_lookup.h"
#include "failure/observer.h"
#include "kshim/image/fatbin.h"
#include "track/fatbin_registry.h"

namespace stress {

using kshim::shim::address_of;
namespace registered = kshim::shim::registered;

void* look_up(void* handle, const char* name, const void* caller) {
  static const bool found = (kshim_find_real_lookups(), true);
  const kshim::shim::LookupAnswer answer =
      found ? kshim_look_up(handle, name, caller, nullptr) : kshim::shim::LookupAnswer{};
  return answer.handled != 0 ? answer.address : dlsym(handle, name);
}

void register_and_forget(const void* fatbin, const char* kernel) {
  const kshim::image::FatbinWrapper wrapper{kshim::image::kWrapperMagic, 1, address_of(fatbin), 0};
  void* slot[1] = {};
  const char stubs[8] = {};
  auto* handle = reinterpret_cast<kshim::shim::abi::FatbinHandle>(slot);
  registered::fatbin(handle, address_of(&wrapper));
  for (const char& stub : stubs) registered::kernel(handle, address_of(&stub), kernel);
  kshim::shim::on_fatbin_registered(handle);
  registered::fatbin_gone(handle);
}

}  // namespace stress
