// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

void* address(const char* name, int version, cuuint64_t flags = 0) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  return cuGetProcAddress(name, &found, version, flags, &status) == CUDA_SUCCESS ? found : nullptr;
}
void* exported(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

TEST(Start, NothingWorksBeforeInit) {
  int count = 0;
  EXPECT_CU(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
  CUcontext context = nullptr;
  EXPECT_CU(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  EXPECT_CU(0, cuInit(0));
  EXPECT_CU(0, cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
}

TEST(Start, VersionAndErrorTextsNeedNoInit) {
  int version = 0;
  EXPECT_CU(0, cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  const char* text = nullptr;
  EXPECT_CU(0, cuGetErrorName(CUDA_ERROR_NO_BINARY_FOR_GPU, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_CU(0, cuGetErrorString(CUDA_ERROR_NO_BINARY_FOR_GPU, &text));
  EXPECT_STREQ(text, "no kernel image is available for execution on the device");
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(899), &text));
  EXPECT_EQ(text, nullptr);
}

// The version asked for chooses the newest variant that is not newer (CUDA Driver API, cuGetProcAddress).
TEST(Start, ProcAddressChoosesByVersion) {
  EXPECT_EQ(address("cuMemAlloc", 2000), exported("cuMemAlloc"));
  EXPECT_EQ(address("cuMemAlloc", 3020), exported("cuMemAlloc_v2"));
  EXPECT_EQ(address("cuMemAlloc", 13000), exported("cuMemAlloc_v2"));
  EXPECT_EQ(address("cuCtxCreate", 11040), exported("cuCtxCreate_v3"));
  EXPECT_EQ(address("cuCtxCreate", 13000), exported("cuCtxCreate_v4"));
  EXPECT_EQ(address("cuGetProcAddress", 11030), exported("cuGetProcAddress"));
  EXPECT_EQ(address("cuGetProcAddress", 12000), exported("cuGetProcAddress_v2"));
  EXPECT_NE(address("cuInit", 2000), nullptr);
}

TEST(Start, ProcAddressKnowsPerThreadTwins) {
  constexpr auto kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(address("cuLaunchKernel", 13000, kPerThread), exported("cuLaunchKernel_ptsz"));
  EXPECT_EQ(address("cuLaunchKernel", 13000), exported("cuLaunchKernel"));
  EXPECT_EQ(address("cuMemcpyDtoH", 13000, kPerThread), exported("cuMemcpyDtoH_v2_ptds"));
  EXPECT_EQ(address("cuMemAlloc", 13000, kPerThread), exported("cuMemAlloc_v2"));
}

TEST(Start, ProcAddressSaysWhyNot) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("", &found, 13000, 0, &status));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNoSuchFunction", &found, 13000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuLibraryLoadData", &found, 11000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(nullptr, &found, 13000, 0, &status));
}

// Declared in cuda.h, not simulated.
TEST(Start, MissingFunctionsAnswerNotSupported) {
  ASSERT_CU(0, cuInit(0));
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuCoredumpSetAttribute(CU_COREDUMP_FILE, nullptr, nullptr));
  CUipcMemHandle handle;
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(&handle, 0));
}

TEST(Start, ExportTables) {
  const unsigned char storage[16] = {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11,
                                     0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93};
  CUuuid id;
  std::memcpy(id.bytes, storage, sizeof storage);
  const void* table = nullptr;
  ASSERT_CU(0, cuGetExportTable(&table, &id));
  using Put = CUresult(CUcontext, void*, void*, void (*)(void*, void*, void*));
  using Get = CUresult(void**, CUcontext, void*);
  const auto* slots = static_cast<void* const*>(table);
  auto* put = reinterpret_cast<Put*>(slots[0]);
  auto* get = reinterpret_cast<Get*>(slots[2]);
  ASSERT_CU(0, cuInit(0));
  int key = 0;
  void* value = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, get(&value, nullptr, &key));  // no current context
  CUcontext context = nullptr;
  ASSERT_CU(0, cuCtxCreate(&context, nullptr, 0, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, get(&value, nullptr, &key));
  static void* ended = nullptr;
  EXPECT_CU(0, put(nullptr, &key, &id, [](void*, void*, void* of) { ended = of; }));
  EXPECT_CU(0, get(&value, nullptr, &key));
  EXPECT_EQ(value, &id);
  EXPECT_CU(0, cuCtxDestroy(context));
  EXPECT_EQ(ended, &id);  // the context's end is the values' end
  id.bytes[0] = 0;
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &id));
}

// A child of fork cannot use what its parent initialized (CUDA C++ Programming Guide, "Initialization").
TEST(Start, ChildOfForkIsNotInitialized) {
  ASSERT_CU(0, cuInit(0));
  CUcontext context = nullptr;
  ASSERT_CU(0, cuCtxCreate(&context, nullptr, 0, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    CUdeviceptr memory = 0;
    const bool refused =
        cuMemAlloc(&memory, 16) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_CU(0, cuCtxDestroy(context));
}

}  // namespace
}  // namespace kshim::sim::test
