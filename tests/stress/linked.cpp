// SPDX-License-Identifier: Apache-2.0
#include "linked.h"

#include <dlfcn.h>

#include "core/observer.h"
#include "cuda/call_args.h"
#include "exports/symbol_lookup.h"
#include "kshim/image/fatbin.h"

namespace stress {

using kshim::shim::address_of;

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
  kshim::shim::on_fatbin_registered(handle, address_of(&wrapper));
  for (const char& stub : stubs) kshim::shim::on_kernel_registered(handle, address_of(&stub), kernel);
  kshim::shim::on_fatbin_complete();
  kshim::shim::on_fatbin_unregistered(handle);
}

}  // namespace stress
