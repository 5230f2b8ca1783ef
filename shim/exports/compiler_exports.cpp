// SPDX-License-Identifier: Apache-2.0
// The exports that programs linked to libnvrtc and libnvJitLink bind to: one function for each row of
// compilers.def and version node. None is the default version (see runtime_exports.cpp).
#include "cuda/compilers.h"

using namespace kshim::shim;

#define KSHIM_EXPORT(name, tag, at, node)                                                                   \
  extern "C" [[gnu::visibility("default")]] abi::Result kshim_##tag##_##name(void* program, unsigned count, \
                                                                             const char* const* options);   \
  asm(".symver kshim_" #tag "_" #name ", " #name at node);                                                  \
  abi::Result kshim_##tag##_##name(void* program, unsigned count, const char* const* options) {             \
    return call_compiler(Hook::name, node, __builtin_return_address(0), program, count, options);           \
  }

#define KSHIM_NODES_nvrtc(name)                        \
  KSHIM_EXPORT(name, nvrtc11, "@", "libnvrtc.so.11.2") \
  KSHIM_EXPORT(name, nvrtc12, "@", "libnvrtc.so.12")   \
  KSHIM_EXPORT(name, nvrtc13, "@", "libnvrtc.so.13")
#define KSHIM_NODES_link(name)                          \
  KSHIM_EXPORT(name, link12, "@", "libnvJitLink.so.12") \
  KSHIM_EXPORT(name, link13, "@", "libnvJitLink.so.13")
#define KSHIM_NODES_link12(name) KSHIM_EXPORT(name, link12, "@", "libnvJitLink.so.12")
#define KSHIM_NODES_link13(name) KSHIM_EXPORT(name, link13, "@", "libnvJitLink.so.13")

#define KSHIM_COMPILER(layer, name, nodes) KSHIM_NODES_##nodes(name)
#include "cuda/compilers.def"
#undef KSHIM_COMPILER
