// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_elf.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "cuda/cuda_libraries.h"
#include "cuda/hooks.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"

namespace kshim::shim {
namespace {

TEST(LoadedElf, FindsWhatTheDynamicLinkerFinds) {
  // A function that no sanitizer stands in for.
  void* const address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  ASSERT_NE(address, nullptr);
  const LoadedObject libc = find_loaded_object(address);
  ASSERT_TRUE(libc);
  EXPECT_EQ(libc.soname, "libc.so.6");
  EXPECT_EQ(libc.elf.find_symbol("gnu_get_libc_version", gnu_hash("gnu_get_libc_version")), address);
  EXPECT_EQ(libc.elf.find_symbol("no_such_symbol", gnu_hash("no_such_symbol")), nullptr);
  EXPECT_TRUE(libc.elf.defines_versions());
  EXPECT_EQ(libc.elf.find_symbol("gnu_get_libc_version", gnu_hash("gnu_get_libc_version"), "GLIBC_9.9"),
            nullptr);
  EXPECT_TRUE(libc.elf.has_dynamic_address(reinterpret_cast<std::uintptr_t>(address)));
  EXPECT_FALSE(libc.elf.has_dynamic_address(reinterpret_cast<std::uintptr_t>(address) + 1));
  EXPECT_TRUE(libc.elf.is_code(reinterpret_cast<std::uintptr_t>(address)));
  void* const data = dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_");  // headers may lie in the segment of the code
  EXPECT_FALSE(libc.elf.is_code(reinterpret_cast<std::uintptr_t>(data)));
  EXPECT_FALSE(libc.elf.is_code(libc.elf.high()));
  EXPECT_EQ(file_of_identity(libc.identity).path, libc.path);
}

// libc has several thousand symbols, about 128 in a block.
TEST(LoadedElf, NamesFunctionsUnlessTheTableIsTooLarge) {
  void* const address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  const LoadedObject libc = find_loaded_object(address);
  ASSERT_TRUE(libc);
  LoadedElf::Function functions[2] = {{reinterpret_cast<std::uintptr_t>(address), 0}, {libc.elf.low(), 0}};
  char name[64];
  std::size_t reads = 4;
  libc.elf.find_functions(functions, 2, reads);
  EXPECT_FALSE(libc.elf.copy_name(functions[0], name, sizeof name));
  reads = 1000;
  libc.elf.find_functions(functions, 2, reads);
  EXPECT_LT(reads, 1000U);
  ASSERT_TRUE(libc.elf.copy_name(functions[0], name, sizeof name));
  EXPECT_STREQ(name, "gnu_get_libc_version");
  EXPECT_FALSE(libc.elf.copy_name(functions[0], name, 5));
  EXPECT_EQ(functions[1].name, 0U);
}

TEST(LoadedElf, TellsWhatIsImported) {
  const LoadedObject self = find_loaded_object(reinterpret_cast<const void*>(&gnu_hash));
  ASSERT_TRUE(self);
  EXPECT_TRUE(self.elf.imports("dlsym"));
  EXPECT_FALSE(self.elf.imports("__cudaRegisterFatBinary"));
}

// As this program is linked, a library's call of a C function leads to what dlsym finds, or, not yet bound,
// back into that library.
TEST(LoadedElf, TellsWhereImportsAreBound) {
  struct Seen {
    LoadedObject object;
    unsigned count = 0;
    unsigned wrong = 0;
  };
  void* const in_library = dlsym(RTLD_DEFAULT, "__cxa_throw");
  if (in_library == nullptr) GTEST_SKIP() << "the C++ library is linked in";
  Seen seen{find_loaded_object(in_library), 0, 0};
  ASSERT_TRUE(seen.object);
  seen.object.elf.each_binding(
      [](std::string_view name) { return name == "abort" || name == "memcpy" || name == "free"; },
      [](void* context, std::string_view name, std::uintptr_t, std::uintptr_t address) {
        auto& out = *static_cast<Seen*>(context);
        ++out.count;
        const auto wanted = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, std::string(name).c_str()));
        if (address != wanted && !out.object.elf.contains(address)) ++out.wrong;
        return true;
      },
      &seen);
  EXPECT_GT(seen.count, 0U);
  EXPECT_EQ(seen.wrong, 0U);
  unsigned none = 0;
  seen.object.elf.each_binding([](std::string_view) { return false; },
                               [](void* context, std::string_view, std::uintptr_t, std::uintptr_t) {
                                 ++*static_cast<unsigned*>(context);
                                 return true;
                               },
                               &none);
  EXPECT_EQ(none, 0U);
}

// A library with 100,000 imports must not cost an exit as many system calls.
TEST(LoadedElf, ReadsNoMoreThanIsAllowed) {
  const LoadedObject libc = find_loaded_object(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
  ASSERT_TRUE(libc);
  PageCache pages;
  const LoadedElf elf = libc.elf.through(pages);
  constexpr std::string_view kName = "gnu_get_libc_version";
  pages.allow(0);
  EXPECT_EQ(elf.find_symbol(kName, gnu_hash(kName)), nullptr);
  pages.allow(100);
  EXPECT_NE(elf.find_symbol(kName, gnu_hash(kName)), nullptr);
  const std::size_t left = pages.allowed();
  EXPECT_LT(left, 100U);
  EXPECT_NE(elf.find_symbol(kName, gnu_hash(kName)), nullptr);
  EXPECT_EQ(pages.allowed(), left) << "what was read is kept";
}

TEST(Objects, NvidiasLibrariesAreKnownByName) {
  for (const char* name : {"/usr/lib/libcusparseLt.so.0", "/x/libcudnn_engines_precompiled.so.9",
                           "/x/libcublas.so", "libnvrtc.alt.so.13", "/x/libnvrtc-builtins.so.12.9",
                           "/x/libnvrtc-builtins-1a2b3c4d.so.11.8", "/x/libcublasLt-1a2b3c4d.so.11",
                           "/x/libnvinfer_builder_resource_sm120.so.10.9.0", "/x/libnvjpeg2k.so.0"})
    EXPECT_TRUE(is_nvidia_library(name)) << name;
  // Of others, whose failures are the program's.
  for (const char* name :
       {"/x/libtorch_cuda.so", "/x/libcufft_wrapper.so", "/x/libnccl-net-ofi.so", "/x/libnccl-net.so.0",
        "/x/libcublas_ops.so", "/x/libnpp_python.so", "/x/libcudnn_frontend_wrapper.so", "/x/libcublas.sof",
        "/x/libcublas", "/x/libcublas-cabinet.so", "/x/libnccl_static.so"})
    EXPECT_FALSE(is_nvidia_library(name)) << name;
  const auto is_driver = [](std::string_view path, std::string_view soname) {
    LoadedObject object;
    object.path = path;
    object.soname = soname;
    return is_driver_file(object);
  };
  EXPECT_TRUE(is_driver("/usr/lib/x86_64-linux-gnu/libcuda.so.1", {}));
  EXPECT_TRUE(is_driver("/memfd:driver (deleted)", "libcuda.so.1"));
  EXPECT_FALSE(is_driver("/x/libcudart.so.13", "libcudart.so.13"));
  EXPECT_TRUE(is_shared_runtime("/x/libcudart.so.13"));
}

}  // namespace
}  // namespace kshim::shim
