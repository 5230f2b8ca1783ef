// SPDX-License-Identifier: Apache-2.0
// One call a row of answers.tsv. Each begins with a context on the first of two cards; see start().
#include "cases.h"

#include <cuda.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>

#include "tests/support/cubin_builder.h"
#include "tests/support/fatbin_builder.h"

namespace kshim::sim::ledger {
namespace {

using kshim::test::Buffer;
using kshim::test::CubinSpec;

inline const int kDevices =
    ::setenv("KSHIM_SIM_DEVICES",
             "8.6:NVIDIA GeForce RTX 3060;8.6:NVIDIA GeForce RTX 3060;8.9:NVIDIA L4;8.9:NVIDIA L40S;"
             "12.0:NVIDIA RTX PRO 6000 Blackwell Server Edition",
             1);
inline const int kDriverVersion = ::setenv("KSHIM_SIM_DRIVER", "13.0", 1);

constexpr const char* kNoImage = "/proc/self/cmdline";
constexpr CUfunction_attribute kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
constexpr std::size_t kStep = std::size_t{2} << 20;

// What the calls ask with.
CUcontext context = nullptr;
CUdevice device = 77;
CUdeviceptr address = 0;
std::size_t size = 77;
unsigned count = 77;

void start() {
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) std::abort();
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) std::abort();
}

std::string say(CUresult result) { return std::to_string(static_cast<int>(result)); }
/// What came back counts where the call succeeded.
[[gnu::format(printf, 2, 3)]] std::string say(CUresult result, const char* format, ...) {
  std::string said = say(result);
  if (result != CUDA_SUCCESS) return said;
  char text[128];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return said + " " + text;
}
std::string say_always(CUresult result, int value) { return say(result) + " " + std::to_string(value); }

// Images
// -----------------------------------------------------------------------------------------------------------

const Buffer& three_kernels() {
  static const Buffer image = [] {
    CubinSpec made;
    made.arch = kshim::test::arch_of(86);
    for (const char* name : {"first", "second", "third"})
      made.kernels.push_back({.name = name, .parameters = {{0, 8}}});
    made.globals.push_back({.name = "variable", .size = 32});
    made.globals.push_back({.name = "managed", .size = 4, .managed = true});
    return kshim::test::build_cubin(made);
  }();
  return image;
}

const Buffer& kinds_of_kernels() {
  static const Buffer image = [] {
    CubinSpec made;
    made.arch = kshim::test::arch_of(86);
    made.kernels = {{.name = "plain"},
                    {.name = "small", .shared_bytes = 256},
                    {.name = "large", .shared_bytes = 40000},
                    {.name = "full", .shared_bytes = 49152},
                    {.name = "bounded", .max_threads = 128},
                    {.name = "bounded512", .max_threads = 512},
                    {.name = "registers", .registers = 255}};
    return kshim::test::build_cubin(made);
  }();
  return image;
}

const Buffer& image_with(const char* kernel) {
  for (const char* name : {"first", "second", "third"}) {
    if (std::strcmp(kernel, name) == 0) return three_kernels();
  }
  return kinds_of_kernels();
}

CUmodule module(const char* kernel = "first") {
  CUmodule made = nullptr;
  if (cuModuleLoadData(&made, image_with(kernel).data()) != CUDA_SUCCESS) std::abort();
  return made;
}
CUfunction function(const char* name = "first") {
  CUfunction found = nullptr;
  if (cuModuleGetFunction(&found, module(name), name) != CUDA_SUCCESS) std::abort();
  return found;
}
CUlibrary library(const char* kernel = "first") {
  CUlibrary made = nullptr;
  if (cuLibraryLoadData(&made, image_with(kernel).data(), nullptr, nullptr, 0, nullptr, nullptr, 0) !=
      CUDA_SUCCESS)
    std::abort();
  return made;
}
CUkernel kernel(const char* name = "first") {
  CUkernel found = nullptr;
  if (cuLibraryGetKernel(&found, library(name), name) != CUDA_SUCCESS) std::abort();
  return found;
}
CUfunction as_function(CUkernel of) { return reinterpret_cast<CUfunction>(of); }

std::string cubin_file() {
  char path[] = "/tmp/kshim-ledger-XXXXXX";
  const int file = mkstemp(path);
  const Buffer& image = three_kernels();
  if (file < 0 || write(file, image.data(), image.size()) < 0) std::abort();
  close(file);
  return path;
}

// Other objects
// -----------------------------------------------------------------------------------------------------------

CUstream stream() {
  CUstream made = nullptr;
  if (cuStreamCreate(&made, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) std::abort();
  return made;
}
CUevent event() {
  CUevent made = nullptr;
  if (cuEventCreate(&made, 0) != CUDA_SUCCESS) std::abort();
  return made;
}
CUdeviceptr memory() {
  CUdeviceptr made = 0;
  if (cuMemAlloc(&made, 4096) != CUDA_SUCCESS) std::abort();
  return made;
}
CUdeviceptr managed() {
  CUdeviceptr made = 0;
  if (cuMemAllocManaged(&made, 4096, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) std::abort();
  return made;
}
CUmemLocation of_device(int ordinal) {
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  place.id = ordinal;
  return place;
}
void notified(CUasyncNotificationInfo*, void*, CUasyncCallbackHandle) {}
void logged(void*, CUlogLevel, char*, size_t) {}

/// A value that an enumeration does not have.
template <class Enum>
Enum none(int number) {
  Enum value;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&value, &number, sizeof value);
  return value;
}

// Calls with more to them than a line
// -----------------------------------------------------------------------------------------------------------

std::string width(CUarray_format format, unsigned channels) {
  const CUresult result = cuDeviceGetTexture1DLinearMaxWidth(&size, format, channels, 0);
  return say(result, "%zu", size);
}

std::string attributes_of(CUfunction of) {
  constexpr CUfunction_attribute asked[] = {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                            CU_FUNC_ATTRIBUTE_PTX_VERSION,
                                            CU_FUNC_ATTRIBUTE_BINARY_VERSION,
                                            kDynamic,
                                            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
  std::string said = "0";
  for (const CUfunction_attribute each : asked) {
    int value = 77;
    if (const CUresult result = cuFuncGetAttribute(&value, each, of); result != CUDA_SUCCESS)
      return say(result);
    said += " " + std::to_string(value);
  }
  return said;
}

/// Sets an attribute of a function, and reads it.
std::string set(int attribute, int value, const char* name = "bounded") {
  CUfunction of = function(name);
  const CUresult result = cuFuncSetAttribute(of, none<CUfunction_attribute>(attribute), value);
  int now = 77;
  if (result == CUDA_SUCCESS) cuFuncGetAttribute(&now, none<CUfunction_attribute>(attribute), of);
  return say(result, "%d", now);
}

std::string kernel_attributes(CUkernel of) {
  int shared = 77;
  int dynamic = 77;
  if (const CUresult r = cuKernelGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, of, 0);
      r != CUDA_SUCCESS)
    return say(r);
  const CUresult result = cuKernelGetAttribute(&dynamic, kDynamic, of, 0);
  return say(result, "%d %d", shared, dynamic);
}

std::string set_kernel(CUfunction_attribute attribute, int value) {
  CUkernel of = kernel("plain");
  const CUresult result = cuKernelSetAttribute(attribute, value, of, 0);
  CUfunction behind = nullptr;
  int kernels = 77;
  int functions = 77;
  cuKernelGetAttribute(&kernels, attribute, of, 0);
  if (cuKernelGetFunction(&behind, of) == CUDA_SUCCESS) cuFuncGetAttribute(&functions, attribute, behind);
  return say(result, "%d %d", kernels, functions);
}

std::string set_on_one() {
  CUkernel of = kernel("small");
  const CUresult result = cuKernelSetAttribute(kDynamic, 65000, of, 0);
  int here = 77;
  int there = 77;
  cuKernelGetAttribute(&here, kDynamic, of, 0);
  cuKernelGetAttribute(&there, kDynamic, of, 1);
  return say(result, "%d %d", here, there);
}

/// The codes of launches with so many bytes of dynamic shared memory, where `allowed` (-1: untouched) were
/// allowed.
std::string launches(CUfunction of, int allowed, std::initializer_list<unsigned> bytes) {
  if (allowed >= 0) cuFuncSetAttribute(of, kDynamic, allowed);
  std::string said;
  for (const unsigned each : bytes) {
    if (!said.empty()) said += " ";
    said += say(cuLaunchKernel(of, 1, 1, 1, 32, 1, 1, each, nullptr, nullptr, nullptr));
  }
  return said;
}

std::string bounded_launches() {
  CUfunction of = function("bounded");
  std::string said;
  constexpr unsigned shapes[][2] = {{128, 1}, {129, 1}, {64, 2}, {64, 3}};
  for (const auto& each : shapes) {
    if (!said.empty()) said += " ";
    said += say(cuLaunchKernel(of, 1, 1, 1, each[0], each[1], 1, 0, nullptr, nullptr, nullptr));
  }
  return said;
}

std::string blocks_at(int allowed) {
  CUfunction of = function("plain");
  if (allowed >= 0) cuFuncSetAttribute(of, kDynamic, allowed);
  std::string said;
  for (const std::size_t bytes : {0U, 49152U, 49153U, 65536U, 101376U}) {
    int blocks = -1;
    const CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, of, 128, bytes);
    if (result != CUDA_SUCCESS) return say(result);
    if (!said.empty()) said += " ";
    said += std::to_string(blocks);
  }
  return said;
}

CUlaunchConfig launch_of(CUlaunchAttribute* attribute, unsigned cluster, unsigned shared = 0) {
  CUlaunchConfig config{};
  config.gridDimX = cluster == 0 ? 1 : cluster;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 128;
  config.sharedMemBytes = shared;
  if (cluster == 0) return config;
  attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute->value.clusterDim.x = cluster;
  attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

std::string active_clusters(unsigned cluster) {
  CUlaunchAttribute attribute{};
  const CUlaunchConfig config = launch_of(&attribute, cluster);
  int clusters = -7;
  const CUresult result = cuOccupancyMaxActiveClusters(&clusters, function("plain"), &config);
  return say(result, "%d", clusters);
}

std::string potential_size(unsigned cluster, unsigned shared = 0) {
  CUlaunchAttribute attribute{};
  const CUlaunchConfig config = launch_of(&attribute, cluster, shared);
  int blocks = -7;
  const CUresult result = cuOccupancyMaxPotentialClusterSize(&blocks, function("plain"), &config);
  return say(result, "%d", blocks);
}

int first_word(const CUstreamAttrValue& value) {
  int word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

std::string stream_attribute(CUstreamAttrID attribute) {
  CUstreamAttrValue value;
  std::memset(&value, 0x55, sizeof value);
  const CUresult result = cuStreamGetAttribute(stream(), attribute, &value);
  return say(result, "%d", first_word(value));
}

std::string set_stream_attribute(CUstreamAttrID attribute, int number) {
  CUstream of = stream();
  CUstreamAttrValue value{};
  std::memcpy(&value, &number, sizeof number);
  const CUresult result = cuStreamSetAttribute(of, attribute, &value);
  std::memset(&value, 0x55, sizeof value);
  cuStreamGetAttribute(of, attribute, &value);
  return say(result, "%d", first_word(value));
}

std::string dumped_file() {
  const std::string path = "/tmp/kshim-ledger-log-" + std::to_string(getpid());
  const CUresult result = cuLogsDumpToFile(nullptr, path.c_str(), 0);
  std::ifstream file(path, std::ios::ate);
  const bool there = file.good();
  const auto bytes = there ? static_cast<long>(file.tellg()) : -1L;
  std::remove(path.c_str());
  return say(result, "%d %ld", there, bytes);
}

CUmemAllocationProp pinned() {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return wanted;
}

/// Maps a part of a handle of two steps.
std::string mapped(std::size_t bytes, std::size_t offset, unsigned long long flags) {
  const CUmemAllocationProp wanted = pinned();
  CUmemGenericAllocationHandle handle = 0;
  if (cuMemCreate(&handle, kStep * 2, &wanted, 0) != CUDA_SUCCESS) std::abort();
  if (cuMemAddressReserve(&address, kStep * 4, 0, 0, 0) != CUDA_SUCCESS) std::abort();
  return say(cuMemMap(address, bytes, offset, handle, flags));
}

// The cases
// -----------------------------------------------------------------------------------------------------------

using Cases = std::map<std::string, std::function<std::string()>>;
Cases& all() {
  static Cases the;
  return the;
}
void ask(const char* call, const char* arguments, std::string (*answer)()) {
  all().emplace(std::string(call) + "\t" + arguments, [answer] {
    start();
    return answer();
  });
}

void ask_devices() {
  ask("cuDeviceGetTexture1DLinearMaxWidth", "float, one channel",
      [] { return width(CU_AD_FORMAT_FLOAT, 1); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "8 bits, four channels",
      [] { return width(CU_AD_FORMAT_UNSIGNED_INT8, 4); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "float, four channels",
      [] { return width(CU_AD_FORMAT_FLOAT, 4); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "8 bits, one channel",
      [] { return width(CU_AD_FORMAT_UNSIGNED_INT8, 1); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "three channels",
      [] { return say(cuDeviceGetTexture1DLinearMaxWidth(&size, CU_AD_FORMAT_FLOAT, 3, 0)); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "a format that is none",
      [] { return say(cuDeviceGetTexture1DLinearMaxWidth(&size, none<CUarray_format>(0x77), 1, 0)); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "no such device",
      [] { return say(cuDeviceGetTexture1DLinearMaxWidth(&size, CU_AD_FORMAT_FLOAT, 1, 9)); });
  ask("cuDeviceGetTexture1DLinearMaxWidth", "no result",
      [] { return say(cuDeviceGetTexture1DLinearMaxWidth(nullptr, CU_AD_FORMAT_FLOAT, 1, 0)); });
  ask("cuDeviceGetLuid", "no result", [] {
    unsigned mask = 0;
    return say(cuDeviceGetLuid(nullptr, &mask, 0));
  });
  ask("cuDeviceGetLuid", "no such device", [] {
    unsigned mask = 0;
    char luid[8];
    return say(cuDeviceGetLuid(luid, &mask, 9));
  });
  ask("cuDeviceGetHostAtomicCapabilities", "three operations", [] {
    CUatomicOperation asked[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE,
                                  CU_ATOMIC_OPERATION_CAS};
    unsigned found[3] = {9, 9, 9};
    const CUresult r = cuDeviceGetHostAtomicCapabilities(found, asked, 3, 0);
    return say(r, "%u %u %u", found[0], found[1], found[2]);
  });
  ask("cuDeviceGetHostAtomicCapabilities", "no result", [] {
    CUatomicOperation asked[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE,
                                  CU_ATOMIC_OPERATION_CAS};
    const CUresult r = cuDeviceGetHostAtomicCapabilities(nullptr, asked, 1, 0);
    return say(r);
  });
  ask("cuDeviceGetHostAtomicCapabilities", "count 0", [] {
    CUatomicOperation asked[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE,
                                  CU_ATOMIC_OPERATION_CAS};
    unsigned found[3] = {9, 9, 9};
    const CUresult r = cuDeviceGetHostAtomicCapabilities(found, asked, 0, 0);
    return say(r);
  });
  ask("cuDeviceGetHostAtomicCapabilities", "an operation that is none", [] {
    CUatomicOperation asked[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE,
                                  CU_ATOMIC_OPERATION_CAS};
    asked[0] = none<CUatomicOperation>(99);
    unsigned found[3] = {9, 9, 9};
    const CUresult r = cuDeviceGetHostAtomicCapabilities(found, asked, 1, 0);
    return say(r);
  });
  ask("cuDeviceGetHostAtomicCapabilities", "no such device", [] {
    CUatomicOperation asked[3] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE,
                                  CU_ATOMIC_OPERATION_CAS};
    unsigned found[3] = {9, 9, 9};
    const CUresult r = cuDeviceGetHostAtomicCapabilities(found, asked, 1, 9);
    return say(r);
  });
  ask("cuDeviceGetP2PAtomicCapabilities", "device 0 to 1", [] {
    CUatomicOperation asked[1] = {CU_ATOMIC_OPERATION_INTEGER_ADD};
    unsigned found[1] = {9};
    const CUresult r = cuDeviceGetP2PAtomicCapabilities(found, asked, 1, 0, 1);
    return say(r, "%u", found[0]);
  });
  ask("cuDeviceGetP2PAtomicCapabilities", "device 0 to itself", [] {
    CUatomicOperation asked[1] = {CU_ATOMIC_OPERATION_INTEGER_ADD};
    unsigned found[1] = {9};
    const CUresult r = cuDeviceGetP2PAtomicCapabilities(found, asked, 1, 0, 0);
    return say(r);
  });
  ask("cuDeviceGetP2PAtomicCapabilities", "device 0 to none", [] {
    CUatomicOperation asked[1] = {CU_ATOMIC_OPERATION_INTEGER_ADD};
    unsigned found[1] = {9};
    const CUresult r = cuDeviceGetP2PAtomicCapabilities(found, asked, 1, 0, 9);
    return say(r);
  });
  ask("cuDeviceRegisterAsyncNotification", "a callback, and unregistered", [] {
    CUasyncCallbackHandle handle = nullptr;
    const CUresult r = cuDeviceRegisterAsyncNotification(0, notified, nullptr, &handle);
    return say(r, "%d %d", handle != nullptr,
               static_cast<int>(cuDeviceUnregisterAsyncNotification(0, handle)));
  });
  ask("cuDeviceRegisterAsyncNotification", "no callback", [] {
    CUasyncCallbackHandle handle = nullptr;
    return say(cuDeviceRegisterAsyncNotification(0, nullptr, nullptr, &handle));
  });
  ask("cuDeviceRegisterAsyncNotification", "no such device", [] {
    CUasyncCallbackHandle handle = nullptr;
    return say(cuDeviceRegisterAsyncNotification(9, notified, nullptr, &handle));
  });
  ask("cuDeviceUnregisterAsyncNotification", "no handle",
      [] { return say(cuDeviceUnregisterAsyncNotification(0, nullptr)); });
}

void ask_contexts() {
  ask("cuCtxGetDevice_v2", "the current context", [] {
    const CUresult r = cuCtxGetDevice_v2(&device, context);
    return say(r, "%d", device);
  });
  ask("cuCtxGetDevice_v2", "null for the current context", [] {
    const CUresult r = cuCtxGetDevice_v2(&device, nullptr);
    return say(r, "%d", device);
  });
  ask("cuCtxGetDevice_v2", "no result", [] { return say(cuCtxGetDevice_v2(nullptr, context)); });
  ask("cuCtxSynchronize_v2", "the current context", [] { return say(cuCtxSynchronize_v2(context)); });
  ask("cuCtxSynchronize_v2", "null for the current context",
      [] { return say(cuCtxSynchronize_v2(nullptr)); });
  ask("cuCtxResetPersistingL2Cache", "a context", [] { return say(cuCtxResetPersistingL2Cache()); });
  ask("cuCtxRecordEvent", "an event", [] { return say(cuCtxRecordEvent(context, event())); });
  ask("cuCtxRecordEvent", "no context", [] { return say(cuCtxRecordEvent(nullptr, event())); });
  ask("cuCtxRecordEvent", "no event", [] { return say(cuCtxRecordEvent(context, nullptr)); });
  ask("cuCtxWaitEvent", "a recorded event", [] {
    CUevent made = event();
    cuEventRecord(made, nullptr);
    return say(cuCtxWaitEvent(context, made));
  });
  ask("cuCtxWaitEvent", "an event never recorded", [] { return say(cuCtxWaitEvent(context, event())); });
  ask("cuCtxWaitEvent", "no event", [] { return say(cuCtxWaitEvent(context, nullptr)); });
  ask("cuGreenCtxDestroy", "no context", [] { return say(cuGreenCtxDestroy(nullptr)); });
  ask("cuCtxFromGreenCtx", "no context", [] {
    CUcontext made = nullptr;
    return say(cuCtxFromGreenCtx(&made, nullptr));
  });
  ask("cuGreenCtxRecordEvent", "no context", [] { return say(cuGreenCtxRecordEvent(nullptr, event())); });
  ask("cuGreenCtxWaitEvent", "no context", [] { return say(cuGreenCtxWaitEvent(nullptr, event())); });
  ask("cuGreenCtxStreamCreate", "no context", [] {
    CUstream made = nullptr;
    return say(cuGreenCtxStreamCreate(&made, nullptr, CU_STREAM_NON_BLOCKING, 0));
  });
  ask("cuGreenCtxGetDevResource", "no context", [] {
    CUdevResource found;
    return say(cuGreenCtxGetDevResource(nullptr, &found, CU_DEV_RESOURCE_TYPE_SM));
  });
  ask("cuGreenCtxGetId", "no context", [] {
    unsigned long long id = 0;
    return say(cuGreenCtxGetId(nullptr, &id));
  });
  ask("cuDeviceGetDevResource", "a type that is none", [] {
    CUdevResource found;
    return say(cuDeviceGetDevResource(0, &found, none<CUdevResourceType>(77)));
  });
  ask("cuDeviceGetDevResource", "no such device", [] {
    CUdevResource found;
    return say(cuDeviceGetDevResource(9, &found, CU_DEV_RESOURCE_TYPE_SM));
  });
}

void ask_modules() {
  ask("cuModuleLoadData", "bytes that are no image", [] {
    CUmodule made = nullptr;
    return say(cuModuleLoadData(&made, "these bytes are no image"));
  });
  ask("cuModuleLoadData", "PTX that begins with .target", [] {
    CUmodule made = nullptr;
    return say(
        cuModuleLoadData(&made, ".target sm_75\n.version 7.8\n.address_size 64\n.entry k()\n{\n ret;\n}\n"));
  });
  ask("cuModuleLoad", "a file that cannot be opened", [] {
    CUmodule made = nullptr;
    return say(cuModuleLoad(&made, "/nonexistent"));
  });
  ask("cuModuleLoad", "a file that is no image", [] {
    CUmodule made = nullptr;
    return say(cuModuleLoad(&made, kNoImage));
  });
  ask("cuModuleGetFunctionCount", "three kernels", [] {
    const CUresult r = cuModuleGetFunctionCount(&count, module());
    return say(r, "%u", count);
  });
  ask("cuModuleGetFunctionCount", "no result",
      [] { return say(cuModuleGetFunctionCount(nullptr, module())); });
  ask("cuModuleGetFunctionCount", "no module", [] { return say(cuModuleGetFunctionCount(&count, nullptr)); });
  ask("cuModuleEnumerateFunctions", "three of three", [] {
    CUfunction found[8] = {};
    const CUresult r = cuModuleEnumerateFunctions(found, 3, module());
    return say(r, "%d %d %d", found[0] != nullptr, found[1] != nullptr, found[2] != nullptr);
  });
  ask("cuModuleEnumerateFunctions", "more than there are", [] {
    CUfunction found[8] = {};
    return say(cuModuleEnumerateFunctions(found, 8, module()));
  });
  ask("cuModuleEnumerateFunctions", "0", [] {
    CUfunction found[8] = {};
    return say(cuModuleEnumerateFunctions(found, 0, module()));
  });
  ask("cuModuleEnumerateFunctions", "no result",
      [] { return say(cuModuleEnumerateFunctions(nullptr, 3, module())); });
  ask("cuModuleEnumerateFunctions", "no module", [] {
    CUfunction found[8];
    return say(cuModuleEnumerateFunctions(found, 3, nullptr));
  });
}

void ask_libraries() {
  ask("cuLibraryLoadFromFile", "a cubin", [] {
    CUlibrary made = nullptr;
    const std::string file = cubin_file();
    const CUresult r = cuLibraryLoadFromFile(&made, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    return say(r, "%d", made != nullptr);
  });
  ask("cuLibraryLoadFromFile", "no such file", [] {
    CUlibrary made = nullptr;
    return say(cuLibraryLoadFromFile(&made, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0));
  });
  ask("cuLibraryLoadFromFile", "no path", [] {
    CUlibrary made = nullptr;
    return say(cuLibraryLoadFromFile(&made, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
  });
  ask("cuLibraryLoadFromFile", "no result", [] {
    const std::string file = cubin_file();
    return say(cuLibraryLoadFromFile(nullptr, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  });
  ask("cuLibraryLoadFromFile", "a file that is no image", [] {
    CUlibrary made = nullptr;
    return say(cuLibraryLoadFromFile(&made, kNoImage, nullptr, nullptr, 0, nullptr, nullptr, 0));
  });
  ask("cuLibraryGetKernelCount", "three kernels", [] {
    const CUresult r = cuLibraryGetKernelCount(&count, library());
    return say(r, "%u", count);
  });
  ask("cuLibraryGetKernelCount", "no result",
      [] { return say(cuLibraryGetKernelCount(nullptr, library())); });
  ask("cuLibraryGetKernelCount", "no library", [] { return say(cuLibraryGetKernelCount(&count, nullptr)); });
  ask("cuLibraryEnumerateKernels", "three of three", [] {
    CUkernel found[8] = {};
    const CUresult r = cuLibraryEnumerateKernels(found, 3, library());
    return say(r, "%d %d %d", found[0] != nullptr, found[1] != nullptr, found[2] != nullptr);
  });
  ask("cuLibraryEnumerateKernels", "more than there are", [] {
    CUkernel found[8] = {};
    return say(cuLibraryEnumerateKernels(found, 8, library()));
  });
  ask("cuLibraryEnumerateKernels", "0", [] {
    CUkernel found[8] = {};
    return say(cuLibraryEnumerateKernels(found, 0, library()));
  });
  ask("cuLibraryEnumerateKernels", "no result",
      [] { return say(cuLibraryEnumerateKernels(nullptr, 3, library())); });
  ask("cuLibraryEnumerateKernels", "no library", [] {
    CUkernel found[8];
    return say(cuLibraryEnumerateKernels(found, 3, nullptr));
  });
  ask("cuKernelGetLibrary", "a kernel", [] {
    CUlibrary found = nullptr;
    const CUresult r = cuKernelGetLibrary(&found, kernel());
    return say(r, "%d", found != nullptr);
  });
  ask("cuKernelGetLibrary", "no result", [] { return say(cuKernelGetLibrary(nullptr, kernel())); });
  ask("cuKernelGetLibrary", "no kernel", [] {
    CUlibrary found = nullptr;
    return say(cuKernelGetLibrary(&found, nullptr));
  });
  ask("cuLibraryGetGlobal", "a variable of 32 bytes", [] {
    const CUresult r = cuLibraryGetGlobal(&address, &size, library(), "variable");
    return say(r, "%zu %d", size, address != 0);
  });
  ask("cuLibraryGetGlobal", "no such variable",
      [] { return say(cuLibraryGetGlobal(&address, &size, library(), "absent")); });
  ask("cuLibraryGetGlobal", "no name",
      [] { return say(cuLibraryGetGlobal(&address, &size, library(), nullptr)); });
  ask("cuLibraryGetGlobal", "no library",
      [] { return say(cuLibraryGetGlobal(&address, &size, nullptr, "variable")); });
  ask("cuLibraryGetGlobal", "neither address nor size",
      [] { return say(cuLibraryGetGlobal(nullptr, nullptr, library(), "variable")); });
  ask("cuLibraryGetGlobal", "a kernel's name",
      [] { return say(cuLibraryGetGlobal(&address, &size, library(), "first")); });
  ask("cuLibraryGetGlobal", "a managed variable",
      [] { return say(cuLibraryGetGlobal(&address, &size, library(), "managed")); });
  ask("cuLibraryGetManaged", "a managed variable of 4 bytes", [] {
    const CUresult r = cuLibraryGetManaged(&address, &size, library(), "managed");
    return say(r, "%zu %d", size, address != 0);
  });
  ask("cuLibraryGetManaged", "a plain variable",
      [] { return say(cuLibraryGetManaged(&address, &size, library(), "variable")); });
  ask("cuLibraryGetManaged", "no such variable",
      [] { return say(cuLibraryGetManaged(&address, &size, library(), "absent")); });
  ask("cuLibraryGetUnifiedFunction", "a kernel's name", [] {
    void* found = nullptr;
    return say(cuLibraryGetUnifiedFunction(&found, library(), "first"));
  });
  ask("cuLibraryGetUnifiedFunction", "no library", [] {
    void* found = nullptr;
    return say(cuLibraryGetUnifiedFunction(&found, nullptr, "first"));
  });
}

void ask_kernels() {
  ask("cuKernelSetCacheConfig", "prefer shared memory",
      [] { return say(cuKernelSetCacheConfig(kernel(), CU_FUNC_CACHE_PREFER_SHARED, 0)); });
  ask("cuKernelSetCacheConfig", "a configuration that is none",
      [] { return say(cuKernelSetCacheConfig(kernel(), none<CUfunc_cache>(9), 0)); });
  ask("cuKernelSetCacheConfig", "no kernel",
      [] { return say(cuKernelSetCacheConfig(nullptr, CU_FUNC_CACHE_PREFER_SHARED, 0)); });
  ask("cuKernelSetCacheConfig", "no such device",
      [] { return say(cuKernelSetCacheConfig(kernel(), CU_FUNC_CACHE_PREFER_SHARED, 9)); });
  ask("cuKernelSetCacheConfig", "device -1",
      [] { return say(cuKernelSetCacheConfig(kernel(), CU_FUNC_CACHE_PREFER_SHARED, -1)); });
  ask("cuKernelGetParamInfo", "the first parameter", [] {
    std::size_t offset = 77;
    const CUresult r = cuKernelGetParamInfo(kernel(), 0, &offset, &size);
    return say(r, "%zu %zu", offset, size);
  });
  ask("cuKernelGetParamInfo", "past the last", [] {
    std::size_t offset = 77;
    return say(cuKernelGetParamInfo(kernel(), 5, &offset, &size));
  });
  ask("cuKernelGetParamInfo", "no kernel", [] {
    std::size_t offset = 77;
    return say(cuKernelGetParamInfo(nullptr, 0, &offset, &size));
  });
  ask("cuFuncGetParamInfo", "the first parameter", [] {
    std::size_t offset = 77;
    const CUresult r = cuFuncGetParamInfo(function(), 0, &offset, &size);
    return say(r, "%zu %zu", offset, size);
  });
  ask("cuFuncGetParamInfo", "past the last", [] {
    std::size_t offset = 77;
    return say(cuFuncGetParamInfo(function(), 5, &offset, &size));
  });
  ask("cuFuncGetParamInfo", "no function", [] {
    std::size_t offset = 77;
    return say(cuFuncGetParamInfo(nullptr, 0, &offset, &size));
  });
  ask("cuKernelGetParamInfo", "no offset",
      [] { return say(cuKernelGetParamInfo(kernel(), 0, nullptr, &size)); });
  ask("cuKernelGetParamInfo", "no size", [] {
    std::size_t offset = 77;
    return say(cuKernelGetParamInfo(kernel(), 0, &offset, nullptr));
  });
  ask("cuFuncGetModule", "a function", [] {
    CUmodule found = nullptr;
    const CUresult r = cuFuncGetModule(&found, function());
    return say(r, "%d", found != nullptr);
  });
  ask("cuFuncGetModule", "no result", [] { return say(cuFuncGetModule(nullptr, function())); });
  ask("cuFuncGetModule", "no function", [] {
    CUmodule found = nullptr;
    return say(cuFuncGetModule(&found, nullptr));
  });
  ask("cuFuncGetName", "a function", [] {
    const char* name = nullptr;
    const CUresult r = cuFuncGetName(&name, function());
    return say(r, "%s", name);
  });
  ask("cuFuncGetName", "no result", [] { return say(cuFuncGetName(nullptr, function())); });
  ask("cuFuncGetName", "no function", [] {
    const char* name = nullptr;
    return say(cuFuncGetName(&name, nullptr));
  });
}

void ask_attributes() {
  ask("cuFuncGetAttribute", "no static shared memory: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("plain")); });
  ask("cuFuncGetAttribute", "256 bytes static: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("small")); });
  ask("cuFuncGetAttribute", "40000 bytes static: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("large")); });
  ask("cuFuncGetAttribute", "48 KiB static: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("full")); });
  ask("cuFuncGetAttribute", "launch bounds of 128: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("bounded")); });
  ask("cuFuncGetAttribute", "launch bounds of 512: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("bounded512")); });
  ask("cuFuncGetAttribute", "255 registers: threads, static, PTX, binary, dynamic, carveout",
      [] { return attributes_of(function("registers")); });
  ask("cuFuncGetAttribute", "attribute 16", [] {
    int value = -5;
    const CUresult r = cuFuncGetAttribute(&value, none<CUfunction_attribute>(16), function());
    return say_always(r, value);
  });
  ask("cuFuncGetAttribute", "attribute -1", [] {
    int value = -5;
    const CUresult r = cuFuncGetAttribute(&value, none<CUfunction_attribute>(-1), function());
    return say_always(r, value);
  });
  ask("cuFuncGetAttribute", "attribute 99", [] {
    int value = -5;
    const CUresult r = cuFuncGetAttribute(&value, none<CUfunction_attribute>(99), function());
    return say_always(r, value);
  });
  ask("cuFuncGetAttribute", "no function", [] {
    int value = 0;
    return say(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
  });
  ask("cuFuncGetAttribute", "no result",
      [] { return say(cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, function())); });
  ask("cuFuncGetAttribute", "a CUkernel", [] {
    int value = 0;
    return say(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, as_function(kernel())));
  });
  ask("cuFuncSetAttribute", "no function",
      [] { return say(cuFuncSetAttribute(nullptr, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1)); });
  ask("cuFuncSetAttribute", "a CUkernel", [] {
    return say(cuFuncSetAttribute(as_function(kernel()), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1));
  });
  ask("cuFuncSetAttribute", "attribute 0 to 1", [] { return set(0, 1); });
  ask("cuFuncSetAttribute", "attribute 1 to 1", [] { return set(1, 1); });
  ask("cuFuncSetAttribute", "attribute 2 to 1", [] { return set(2, 1); });
  ask("cuFuncSetAttribute", "attribute 3 to 1", [] { return set(3, 1); });
  ask("cuFuncSetAttribute", "attribute 4 to 1", [] { return set(4, 1); });
  ask("cuFuncSetAttribute", "attribute 5 to 1", [] { return set(5, 1); });
  ask("cuFuncSetAttribute", "attribute 6 to 1", [] { return set(6, 1); });
  ask("cuFuncSetAttribute", "attribute 7 to 1", [] { return set(7, 1); });
  ask("cuFuncSetAttribute", "attribute 8 to 1", [] { return set(8, 1); });
  ask("cuFuncSetAttribute", "attribute 9 to 1", [] { return set(9, 1); });
  ask("cuFuncSetAttribute", "attribute 10 to 1", [] { return set(10, 1); });
  ask("cuFuncSetAttribute", "attribute 11 to 1", [] { return set(11, 1); });
  ask("cuFuncSetAttribute", "attribute 12 to 1", [] { return set(12, 1); });
  ask("cuFuncSetAttribute", "attribute 13 to 1", [] { return set(13, 1); });
  ask("cuFuncSetAttribute", "attribute 14 to 1", [] { return set(14, 1); });
  ask("cuFuncSetAttribute", "attribute 15 to 1", [] { return set(15, 1); });
  ask("cuFuncSetAttribute", "attribute 16 to 1", [] { return set(16, 1); });
  ask("cuFuncSetAttribute", "attribute 17 to 1", [] { return set(17, 1); });
  ask("cuFuncSetAttribute", "-1 bytes of dynamic shared memory, no static",
      [] { return set(8, -1, "plain"); });
  ask("cuFuncSetAttribute", "0 bytes of dynamic shared memory, no static", [] { return set(8, 0, "plain"); });
  ask("cuFuncSetAttribute", "49152 bytes of dynamic shared memory, no static",
      [] { return set(8, 49152, "plain"); });
  ask("cuFuncSetAttribute", "49153 bytes of dynamic shared memory, no static",
      [] { return set(8, 49153, "plain"); });
  ask("cuFuncSetAttribute", "101376 bytes of dynamic shared memory, no static",
      [] { return set(8, 101376, "plain"); });
  ask("cuFuncSetAttribute", "101377 bytes of dynamic shared memory, no static",
      [] { return set(8, 101377, "plain"); });
  ask("cuFuncSetAttribute", "102400 bytes of dynamic shared memory, no static",
      [] { return set(8, 102400, "plain"); });
  ask("cuFuncSetAttribute", "101120 bytes of dynamic shared memory, 256 static",
      [] { return set(8, 101120, "small"); });
  ask("cuFuncSetAttribute", "101121 bytes of dynamic shared memory, 256 static",
      [] { return set(8, 101121, "small"); });
  ask("cuFuncSetAttribute", "61376 bytes of dynamic shared memory, 40000 static",
      [] { return set(8, 61376, "large"); });
  ask("cuFuncSetAttribute", "61377 bytes of dynamic shared memory, 40000 static",
      [] { return set(8, 61377, "large"); });
  ask("cuFuncSetAttribute", "52225 bytes of dynamic shared memory, 48 KiB static",
      [] { return set(8, 52225, "full"); });
  ask("cuFuncSetAttribute", "carveout -2", [] { return set(9, -2); });
  ask("cuFuncSetAttribute", "carveout -1", [] { return set(9, -1); });
  ask("cuFuncSetAttribute", "carveout 0", [] { return set(9, 0); });
  ask("cuFuncSetAttribute", "carveout 100", [] { return set(9, 100); });
  ask("cuFuncSetAttribute", "carveout 101", [] { return set(9, 101); });
  ask("cuFuncSetAttribute", "required cluster width -1", [] { return set(11, -1); });
  ask("cuFuncSetAttribute", "cluster scheduling policy 2", [] { return set(15, 2); });
  ask("cuFuncSetAttribute", "cluster scheduling policy 3", [] { return set(15, 3); });
  ask("cuFuncSetAttribute", "non-portable cluster size 7", [] { return set(14, 7); });
  ask("cuFuncSetAttribute", "non-portable cluster size -1", [] { return set(14, -1); });
  ask("cuKernelGetAttribute", "256 bytes static: static, dynamic",
      [] { return kernel_attributes(kernel("small")); });
  ask("cuKernelGetAttribute", "attribute 16", [] {
    int value = 0;
    return say(cuKernelGetAttribute(&value, none<CUfunction_attribute>(16), kernel(), 0));
  });
  ask("cuKernelGetAttribute", "no result",
      [] { return say(cuKernelGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel(), 0)); });
  ask("cuKernelGetAttribute", "no kernel", [] {
    int value = 0;
    return say(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr, 0));
  });
  ask("cuKernelGetAttribute", "no such device", [] {
    int value = 0;
    return say(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel(), 5));
  });
  ask("cuKernelSetAttribute", "no such device",
      [] { return say(cuKernelSetAttribute(kDynamic, 1, kernel(), 5)); });
  ask("cuKernelSetAttribute", "no kernel", [] { return say(cuKernelSetAttribute(kDynamic, 1, nullptr, 0)); });
  ask("cuKernelSetAttribute", "70000 bytes: the kernel, the function of it",
      [] { return set_kernel(kDynamic, 70000); });
  ask("cuKernelSetAttribute", "101121 bytes, 256 static",
      [] { return say(cuKernelSetAttribute(kDynamic, 101121, kernel("small"), 0)); });
  ask("cuKernelSetAttribute", "attribute 1",
      [] { return say(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1, kernel(), 0)); });
  ask("cuKernelSetAttribute", "carveout 30: the kernel, the function of it",
      [] { return set_kernel(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 30); });
  ask("cuKernelSetAttribute", "65000 bytes on device 0: read on devices 0 and 1, 256 static",
      [] { return set_on_one(); });
}

void ask_launches() {
  ask("cuLaunchKernel", "dynamic shared memory, not opted in: 49152, 49153", [] {
    return launches(function("plain"), -1, {49152, 49153});
  });
  ask("cuLaunchKernel", "dynamic shared memory, 40000 static: 9152, 9153", [] {
    return launches(function("large"), -1, {9152, 9153});
  });
  ask("cuLaunchKernel", "dynamic shared memory, 48 KiB static: 0, 1", [] {
    return launches(function("full"), -1, {0, 1});
  });
  ask("cuLaunchKernel", "dynamic shared memory, 60000 allowed: 49153, 60000, 60001", [] {
    return launches(function("plain"), 60000, {49153, 60000, 60001});
  });
  ask("cuLaunchKernel", "dynamic shared memory, 100 allowed: 100, 101, 49152", [] {
    return launches(function("plain"), 100, {100, 101, 49152});
  });
  ask("cuLaunchKernel", "a CUkernel with 60000 allowed: 60000, 60001", [] {
    CUkernel of = kernel("plain");
    cuKernelSetAttribute(kDynamic, 60000, of, 0);
    return launches(as_function(of), -1, {60000, 60001});
  });
  ask("cuLaunchKernel", "launch bounds of 128: 128, 129, 64x2, 64x3 threads",
      [] { return bounded_launches(); });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "no static shared memory, 4 blocks of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 4, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 1 block of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 1, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 2 blocks of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 2, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 4 blocks of 256", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 4, 256);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 8 blocks of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 8, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 12 blocks of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 12, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 6 blocks of 256", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 6, 256);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 3 blocks of 512", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 3, 512);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 16 blocks of 64", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 16, 64);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "256 static, 1 block of 1024", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("small"), 1, 1024);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "100 blocks of 128", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 100, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "no block", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 0, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "no thread", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 1, 0);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "a block of 2048", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 1, 2048);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "32 blocks of 32", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 32, 32);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "-1 blocks", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), -1, 128);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "a block of -5", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 1, -5);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "2 blocks of 1024", [] {
    const CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&size, function("plain"), 2, 1024);
    return say(r, "%zu", size);
  });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "no result",
      [] { return say(cuOccupancyAvailableDynamicSMemPerBlock(nullptr, function(), 1, 128)); });
  ask("cuOccupancyAvailableDynamicSMemPerBlock", "no function",
      [] { return say(cuOccupancyAvailableDynamicSMemPerBlock(&size, nullptr, 1, 128)); });
  ask("cuOccupancyMaxActiveBlocksPerMultiprocessor",
      "blocks of 128 with 0, 49152, 49153, 65536, 101376 bytes", [] { return blocks_at(-1); });
  ask("cuOccupancyMaxActiveBlocksPerMultiprocessor", "the same, 60000 allowed",
      [] { return blocks_at(60000); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, no dimension", [] { return active_clusters(0); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, 1 blocks", [] { return active_clusters(1); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, 2 blocks", [] { return active_clusters(2); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, 8 blocks", [] { return active_clusters(8); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, 16 blocks", [] { return active_clusters(16); });
  ask("cuOccupancyMaxActiveClusters", "no cluster launch, 17 blocks", [] { return active_clusters(17); });
  ask("cuOccupancyMaxPotentialClusterSize", "no cluster launch, no dimension",
      [] { return potential_size(0); });
  ask("cuOccupancyMaxPotentialClusterSize", "no cluster launch, 2 blocks", [] { return potential_size(2); });
  ask("cuOccupancyMaxPotentialClusterSize", "no cluster launch, 1 MiB of shared memory",
      [] { return potential_size(0, 1 << 20); });
  ask("cuOccupancyMaxActiveClusters", "no result", [] {
    CUlaunchConfig config = launch_of(nullptr, 0);
    return say(cuOccupancyMaxActiveClusters(nullptr, function(), &config));
  });
  ask("cuOccupancyMaxPotentialClusterSize", "no result", [] {
    CUlaunchConfig config = launch_of(nullptr, 0);
    return say(cuOccupancyMaxPotentialClusterSize(nullptr, function(), &config));
  });
}

void ask_streams() {
  ask("cuStreamGetDevice", "a stream", [] {
    const CUresult r = cuStreamGetDevice(stream(), &device);
    return say(r, "%d", device);
  });
  ask("cuStreamGetDevice", "the null stream", [] {
    const CUresult r = cuStreamGetDevice(nullptr, &device);
    return say(r, "%d", device);
  });
  ask("cuStreamGetDevice", "no result", [] { return say(cuStreamGetDevice(stream(), nullptr)); });
  ask("cuStreamGetId", "a stream", [] {
    unsigned long long id = 0;
    const CUresult r = cuStreamGetId(stream(), &id);
    return say(r, "%d", id > 0);
  });
  ask("cuStreamGetId", "the null stream", [] {
    unsigned long long id = 77;
    const CUresult r = cuStreamGetId(nullptr, &id);
    return say(r, "%d", id != 77);
  });
  ask("cuStreamGetId", "no result", [] { return say(cuStreamGetId(stream(), nullptr)); });
  ask("cuStreamCopyAttributes", "of one stream to another",
      [] { return say(cuStreamCopyAttributes(stream(), stream())); });
  ask("cuStreamCopyAttributes", "to the null stream",
      [] { return say(cuStreamCopyAttributes(nullptr, stream())); });
  ask("cuStreamCopyAttributes", "of the null stream",
      [] { return say(cuStreamCopyAttributes(stream(), nullptr)); });
  ask("cuStreamGetAttribute", "synchronization policy, never set",
      [] { return stream_attribute(CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY); });
  ask("cuStreamGetAttribute", "priority", [] { return stream_attribute(CU_STREAM_ATTRIBUTE_PRIORITY); });
  ask("cuStreamGetAttribute", "access policy window, never set: bytes, hit ratio", [] {
    CUstreamAttrValue value;
    std::memset(&value, 0x55, sizeof value);
    const CUresult r = cuStreamGetAttribute(stream(), CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
    return say(r, "%zu %.1f", value.accessPolicyWindow.num_bytes,
               static_cast<double>(value.accessPolicyWindow.hitRatio));
  });
  ask("cuStreamGetAttribute", "an attribute that is none", [] {
    CUstreamAttrValue value;
    return say(cuStreamGetAttribute(stream(), none<CUstreamAttrID>(99), &value));
  });
  ask("cuStreamSetAttribute", "synchronization policy 2, and read",
      [] { return set_stream_attribute(CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, 2); });
  ask("cuStreamSetAttribute", "priority", [] {
    CUstreamAttrValue value{};
    value.priority = -1;
    return say(cuStreamSetAttribute(stream(), CU_STREAM_ATTRIBUTE_PRIORITY, &value));
  });
  ask("cuStreamSetAttribute", "access policy window of no bytes", [] {
    CUstreamAttrValue value{};
    return say(cuStreamSetAttribute(stream(), CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  });
  ask("cuStreamSetAttribute", "an attribute that is none", [] {
    CUstreamAttrValue value{};
    return say(cuStreamSetAttribute(stream(), none<CUstreamAttrID>(99), &value));
  });
}

void ask_logs() {
  ask("cuLogsCurrent", "an empty log", [] {
    CUlogIterator at = 77;
    const CUresult r = cuLogsCurrent(&at, 0);
    return say(r, "%u", at);
  });
  ask("cuLogsCurrent", "no result", [] { return say(cuLogsCurrent(nullptr, 0)); });
  ask("cuLogsDumpToMemory", "an empty log", [] {
    char text[256];
    size = sizeof text;
    const CUresult r = cuLogsDumpToMemory(nullptr, text, &size, 0);
    return say(r, "%zu", size);
  });
  ask("cuLogsDumpToMemory", "no buffer", [] {
    size = 256;
    return say(cuLogsDumpToMemory(nullptr, nullptr, &size, 0));
  });
  ask("cuLogsDumpToMemory", "no size", [] {
    char text[256];
    return say(cuLogsDumpToMemory(nullptr, text, nullptr, 0));
  });
  ask("cuLogsDumpToFile", "an empty log: the file is made, with 0 bytes", [] { return dumped_file(); });
  ask("cuLogsDumpToFile", "no path", [] { return say(cuLogsDumpToFile(nullptr, nullptr, 0)); });
  ask("cuLogsRegisterCallback", "a callback, and unregistered", [] {
    CUlogsCallbackHandle handle = nullptr;
    const CUresult r = cuLogsRegisterCallback(logged, nullptr, &handle);
    return say(r, "%d %d", handle != nullptr, static_cast<int>(cuLogsUnregisterCallback(handle)));
  });
  ask("cuLogsRegisterCallback", "no callback", [] {
    CUlogsCallbackHandle handle = nullptr;
    return say(cuLogsRegisterCallback(nullptr, nullptr, &handle));
  });
  ask("cuLogsUnregisterCallback", "no handle", [] { return say(cuLogsUnregisterCallback(nullptr)); });
}

void ask_pools() {
  ask("cuMemGetDefaultMemPool", "device 0", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    const CUresult r = cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
    return say(r, "%d", pool != nullptr);
  });
  ask("cuMemGetDefaultMemPool", "type: invalid", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    return say(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_INVALID));
  });
  ask("cuMemGetDefaultMemPool", "type: managed", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    return say(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
  });
  ask("cuMemGetDefaultMemPool", "no such device", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    place.id = 9;
    return say(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask("cuMemGetDefaultMemPool", "location: invalid", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    place.type = CU_MEM_LOCATION_TYPE_INVALID;
    return say(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask("cuMemGetDefaultMemPool", "no result", [] {
    CUmemLocation place = of_device(0);
    return say(cuMemGetDefaultMemPool(nullptr, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask("cuMemGetDefaultMemPool", "no location", [] {
    CUmemoryPool pool = nullptr;
    return say(cuMemGetDefaultMemPool(&pool, nullptr, CU_MEM_ALLOCATION_TYPE_PINNED));
  });
  ask("cuMemGetMemPool", "device 0: the default pool", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    CUmemoryPool standard = nullptr;
    cuDeviceGetDefaultMemPool(&standard, 0);
    const CUresult r = cuMemGetMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_PINNED);
    return say(r, "%d", pool == standard);
  });
  ask("cuMemSetMemPool", "a pool of one's own, then cuDeviceGetMemPool", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    CUmemPoolProps wanted{};
    wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = place;
    CUmemoryPool own = nullptr;
    cuMemPoolCreate(&own, &wanted);
    const CUresult r = cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, own);
    cuDeviceGetMemPool(&pool, 0);
    return say(r, "%d", own != nullptr && pool == own);
  });
  ask("cuMemSetMemPool", "no pool", [] {
    CUmemLocation place = of_device(0);
    return say(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, nullptr));
  });
  ask("cuMemSetMemPool", "no location", [] {
    CUmemoryPool pool = nullptr;
    cuDeviceGetDefaultMemPool(&pool, 0);
    return say(cuMemSetMemPool(nullptr, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  });
  ask("cuMemSetMemPool", "no such device", [] {
    CUmemLocation place = of_device(0);
    CUmemoryPool pool = nullptr;
    cuDeviceGetDefaultMemPool(&pool, 0);
    place.id = 9;
    return say(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  });
}

void ask_ranges_and_virtual_memory() {
  ask("cuMemRangeGetAttribute", "managed memory that nothing was advised of: read mostly", [] {
    int value = 77;
    const CUresult r =
        cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), 4096);
    return say(r, "%d", value);
  });
  ask("cuMemRangeGetAttribute", "managed memory that nothing was advised of: preferred location", [] {
    int value = 77;
    const CUresult r = cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                              managed(), 4096);
    return say(r, "%d", value);
  });
  ask("cuMemRangeGetAttribute", "managed memory that nothing was advised of: last prefetch", [] {
    int value = 77;
    const CUresult r = cuMemRangeGetAttribute(&value, sizeof value,
                                              CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, managed(), 4096);
    return say(r, "%d", value);
  });
  ask("cuMemRangeGetAttribute", "managed memory that nothing was advised of: accessed by", [] {
    int value = 77;
    const CUresult r =
        cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, managed(), 4096);
    return say(r, "%d", value);
  });
  ask("cuMemRangeGetAttribute", "a size that fits no answer", [] {
    int value = 77;
    return say(cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), 4096));
  });
  ask("cuMemRangeGetAttribute", "memory that is not managed", [] {
    int value = 77;
    return say(
        cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory(), 4096));
  });
  ask("cuMemRangeGetAttribute", "an attribute that is none", [] {
    int value = 77;
    return say(
        cuMemRangeGetAttribute(&value, sizeof value, none<CUmem_range_attribute>(99), managed(), 4096));
  });
  ask("cuMemRangeGetAttribute", "no result", [] {
    return say(cuMemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), 4096));
  });
  ask("cuMemCreate", "1 byte", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, 1, &wanted, 0));
  });
  ask("cuMemCreate", "64 KiB", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, 65536, &wanted, 0));
  });
  ask("cuMemCreate", "2 MiB", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, kStep, &wanted, 0));
  });
  ask("cuMemCreate", "2 MiB and a byte", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, kStep + 1, &wanted, 0));
  });
  ask("cuMemCreate", "3 MiB", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, kStep / 2 * 3, &wanted, 0));
  });
  ask("cuMemCreate", "4 MiB", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, kStep * 2, &wanted, 0));
  });
  ask("cuMemCreate", "0", [] {
    const CUmemAllocationProp wanted = pinned();
    CUmemGenericAllocationHandle handle = 0;
    return say(cuMemCreate(&handle, 0, &wanted, 0));
  });
  ask("cuMemGetAllocationGranularity", "minimum", [] {
    const CUmemAllocationProp wanted = pinned();
    const CUresult r = cuMemGetAllocationGranularity(&size, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return say(r, "%zu", size);
  });
  ask("cuMemGetAllocationGranularity", "an option that is none", [] {
    const CUmemAllocationProp wanted = pinned();
    return say(cuMemGetAllocationGranularity(&size, &wanted, none<CUmemAllocationGranularity_flags>(2)));
  });
  ask("cuMemAddressReserve", "64 KiB", [] { return say(cuMemAddressReserve(&address, 65536, 0, 0, 0)); });
  ask("cuMemAddressReserve", "2 MiB", [] { return say(cuMemAddressReserve(&address, kStep, 0, 0, 0)); });
  ask("cuMemAddressReserve", "3 MiB",
      [] { return say(cuMemAddressReserve(&address, kStep / 2 * 3, 0, 0, 0)); });
  ask("cuMemAddressReserve", "2 MiB, aligned to 4096",
      [] { return say(cuMemAddressReserve(&address, kStep, 4096, 0, 0)); });
  ask("cuMemAddressReserve", "2 MiB, aligned to 6 MiB",
      [] { return say(cuMemAddressReserve(&address, kStep, kStep * 3, 0, 0)); });
  ask("cuMemAddressReserve", "2 MiB, aligned to 5",
      [] { return say(cuMemAddressReserve(&address, kStep, 5, 0, 0)); });
  ask("cuMemAddressReserve", "0", [] { return say(cuMemAddressReserve(&address, 0, 0, 0, 0)); });
  ask("cuMemMap", "half of the step", [] { return mapped(kStep / 2, 0, 0); });
  ask("cuMemMap", "the whole handle", [] { return mapped(kStep * 2, 0, 0); });
  ask("cuMemMap", "more than the handle has", [] { return mapped(kStep * 3, 0, 0); });
  ask("cuMemMap", "an offset of 4096", [] { return mapped(kStep, 4096, 0); });
  ask("cuMemMap", "0", [] { return mapped(0, 0, 0); });
  ask("cuMemcpy3DPeer", "nothing to copy", [] {
    CUDA_MEMCPY3D_PEER copy{};
    return say(cuMemcpy3DPeer(&copy));
  });
}

}  // namespace

const std::map<std::string, std::function<std::string()>>& cases() {
  if (all().empty()) {
    ask_devices();
    ask_contexts();
    ask_modules();
    ask_libraries();
    ask_kernels();
    ask_attributes();
    ask_launches();
    ask_streams();
    ask_logs();
    ask_pools();
    ask_ranges_and_virtual_memory();
  }
  return all();
}

}  // namespace kshim::sim::ledger
