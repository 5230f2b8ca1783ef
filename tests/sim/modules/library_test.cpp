// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "with_device.h"

namespace kshim::sim::test {
namespace {

class Modules : public WithDevice {};

CubinSpec with_variables() {
  CubinSpec made = spec(90);
  made.kernels.push_back({.name = "second", .shared_bytes = 1024 + 256, .frame_bytes = 16});
  Buffer initial;
  for (const int value : {1, 2, 3, 4}) kshim::test::append(initial, value);
  made.globals.push_back({.name = "table", .size = 16, .initial = initial});
  made.globals.push_back({.name = "zeros", .size = 64});
  made.globals.push_back({.name = "shared_with_host", .size = 4, .managed = true});
  return made;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_F(Modules, ReferencesOfTheNamesThatTheImageHas) {
  const Buffer image = build_cubin(with_variables());
  CUmodule module = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, image.data()));
  CUtexref first = nullptr;
  CUtexref second = nullptr;
  CUtexref again = nullptr;
  EXPECT_CU(0, cuModuleGetTexRef(&first, module, "table"));
  EXPECT_CU(0, cuModuleGetTexRef(&second, module, "zeros"));
  EXPECT_CU(0, cuModuleGetTexRef(&again, module, "table"));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
  EXPECT_CU(500, cuModuleGetTexRef(&first, module, "absent"));
  EXPECT_CU(1, cuModuleGetTexRef(nullptr, module, "table"));
  CUsurfref surface = nullptr;
  EXPECT_CU(0, cuModuleGetSurfRef(&surface, module, "zeros"));
  EXPECT_CU(500, cuModuleGetSurfRef(&surface, module, "tabl"));
}
#pragma GCC diagnostic pop

TEST_F(Modules, VariablesHaveTheirInitialContents) {
  const Buffer image = build_cubin(with_variables());
  CUmodule module = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, image.data()));
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  ASSERT_CU(0, cuModuleGetGlobal(&address, &bytes, module, "table"));
  EXPECT_EQ(bytes, 16U);
  int values[4] = {};
  ASSERT_CU(0, cuMemcpyDtoH(values, address, sizeof values));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[3], 4);
  ASSERT_CU(0, cuModuleGetGlobal(nullptr, &bytes, module, "zeros"));
  EXPECT_EQ(bytes, 64U);
  EXPECT_CU(500, cuModuleGetGlobal(&address, &bytes, module, "absent"));
  EXPECT_CU(1, cuMemFree(address));  // a variable is no allocation of the program's
  ASSERT_CU(0, cuModuleUnload(module));
  EXPECT_CU(1, cuMemcpyDtoH(values, address, sizeof values));
}

// Bytecode as cuTile writes it: a kernel with hints, another function, and three strings.
Buffer tile_ir(unsigned minor) {
  Buffer out =
      kshim::test::to_buffer(std::string_view("\x7f"
                                              "TileIR\0\x0d",
                                              9));
  const auto bytes = [&out](std::initializer_list<unsigned> all) {
    for (const unsigned each : all) kshim::test::append(out, static_cast<std::uint8_t>(each));
  };
  bytes({minor, 0, 0});
  bytes({0x82, 20, 8, 0xcb});                                 // functions, aligned to 8
  bytes({2, 0, 0, 1, 1, 1, 0x5c});                            // a private one, with a body of a byte
  bytes({1, 0, 6, 1, 11, 1, 2, 10, 0, 2, 0x5c, 0x5c, 0xcb});  // the kernel
  bytes({0x81, 34, 4});                                       // strings, aligned to 4
  while (out.size() % 4 != 0) bytes({0xcb});
  bytes({3, 0xcb, 0xcb, 0xcb});
  for (const std::uint32_t offset : {0U, 6U, 11U}) kshim::test::append(out, offset);
  kshim::test::append(out, std::string_view("helperfirstdefault"));
  bytes({0});
  return out;
}

TEST_F(Modules, KernelsOfTileIrAreThereByName) {
  const auto load = [](Buffer payload, unsigned minor, CUmodule& module) {
    const Buffer fatbin = FatbinBuilder{}
                              .add({.kind = image::ImageKind::tileir,
                                    .arch = arch_of(120),
                                    .isa = {13, static_cast<std::uint16_t>(minor)},
                                    .payload = std::move(payload)})
                              .build();
    return cuModuleLoadData(&module, fatbin.data());
  };
  CUmodule module = nullptr;
  ASSERT_CU(0, load(tile_ir(0), 0, module));
  CUfunction function = nullptr;
  ASSERT_CU(0, cuModuleGetFunction(&function, module, "first"));
  EXPECT_CU(0, cuLaunchKernel(function, 4, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(500, cuModuleGetFunction(&function, module, "helper"));
  EXPECT_CU(209, load(tile_ir(4), 4, module));  // newer than the driver, which is for 13.0
  Buffer cut = tile_ir(0);
  cut.resize(24);
  EXPECT_CU(200, load(cut, 0, module));
  EXPECT_CU(200, load(kshim::test::to_buffer("not Tile IR at all"), 0, module));
}

TEST_F(Modules, VariablesOfPtxToo) {
  const Buffer image = text(
      ".version 7.8\n.target sm_75\n.address_size 64\n"
      ".visible .global .align 4 .b8 table[16] = {1, 0, 0, 0, 0x2, 0, 0, 0, 255};\n"
      ".const .align 8 .f64 halves[2] = {0d3FE0000000000000, 0.25};\n"
      ".global .align 4 .f32 single = 0f3F800000;\n"
      ".visible .global .align 4 .u32 zeros[4];\n"
      ".global .align 4 .s32 below = -2;\n");
  CUmodule module = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, image.data()));
  const auto read = [&](const char* name, auto& out) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    EXPECT_CU(0, cuModuleGetGlobal(&address, &bytes, module, name)) << name;
    EXPECT_EQ(bytes, sizeof out) << name;
    EXPECT_CU(0, cuMemcpyDtoH(&out, address, sizeof out));
  };
  int table[4] = {};
  read("table", table);
  EXPECT_EQ(table[0], 1);
  EXPECT_EQ(table[1], 2);
  EXPECT_EQ(table[2], 255);
  EXPECT_EQ(table[3], 0);
  double halves[2] = {};
  read("halves", halves);
  EXPECT_EQ(halves[0], 0.5);
  EXPECT_EQ(halves[1], 0.25);
  float single = 0;
  read("single", single);
  EXPECT_EQ(single, 1.0F);
  int zeros[4] = {1, 1, 1, 1};
  read("zeros", zeros);
  EXPECT_EQ(zeros[3], 0);
  int below = 0;
  read("below", below);
  EXPECT_EQ(below, -2);
}

TEST_F(Modules, FunctionsAreListedAndDescribed) {
  const Buffer image = build_cubin(with_variables());
  CUmodule module = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, image.data()));
  unsigned count = 0;
  ASSERT_CU(0, cuModuleGetFunctionCount(&count, module));
  ASSERT_EQ(count, 2U);
  CUfunction functions[2] = {};
  ASSERT_CU(0, cuModuleEnumerateFunctions(functions, 2, module));
  const char* name = nullptr;
  ASSERT_CU(0, cuFuncGetName(&name, functions[1]));
  EXPECT_STREQ(name, "second");
  CUfunction again = nullptr;
  ASSERT_CU(0, cuModuleGetFunction(&again, module, "second"));
  EXPECT_EQ(again, functions[1]);
  CUmodule owner = nullptr;
  ASSERT_CU(0, cuFuncGetModule(&owner, again));
  EXPECT_EQ(owner, module);
  const auto attribute = [&](CUfunction function, CUfunction_attribute number) {
    int value = -1;
    EXPECT_CU(0, cuFuncGetAttribute(&value, number, function));
    return value;
  };
  EXPECT_EQ(attribute(functions[0], CU_FUNC_ATTRIBUTE_NUM_REGS), 24);
  EXPECT_EQ(attribute(functions[0], CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
  EXPECT_EQ(attribute(functions[1], CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 256);  // 1 KiB is the driver's
  EXPECT_EQ(attribute(functions[1], CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 16);
  EXPECT_EQ(attribute(functions[1], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 48 * 1024 - 256);
  std::size_t offset = 99;
  std::size_t size = 0;
  EXPECT_CU(0, cuFuncGetParamInfo(functions[0], 1, &offset, &size));
  EXPECT_EQ(offset, 8U);
  EXPECT_EQ(size, 4U);
  EXPECT_CU(1, cuFuncGetParamInfo(functions[0], 2, &offset, &size));
  EXPECT_CU(1, cuFuncSetAttribute(functions[0], CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
}

TEST_F(Modules, FromFiles) {
  const auto path =
      std::filesystem::temp_directory_path() / ("kshim_sim_module." + std::to_string(::getpid()));
  CUmodule module = nullptr;
  EXPECT_CU(301, cuModuleLoad(&module, path.c_str()));
  const Buffer image = cubin(90);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(image.data()), std::ssize(image));
  EXPECT_CU(0, cuModuleLoad(&module, path.c_str()));
  CUlibrary library = nullptr;
  EXPECT_CU(0, cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  std::filesystem::resize_file(path, image.size() / 2);
  EXPECT_CU(200, cuModuleLoad(&module, path.c_str()));
  std::filesystem::remove(path);
  const std::string folder = std::filesystem::temp_directory_path();
  EXPECT_CU(301, cuModuleLoad(&module, folder.c_str()));
  CUlinkState link = nullptr;
  ASSERT_CU(0, cuLinkCreate(0, nullptr, nullptr, &link));
  EXPECT_CU(301, cuLinkAddFile(link, CU_JIT_INPUT_CUBIN, folder.c_str(), 0, nullptr, nullptr));
  EXPECT_CU(0, cuLinkDestroy(link));
}

TEST_F(Modules, TheCompilersComplaintIsInTheLog) {
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const Buffer image = text(ptx(75, "9.9"));
  EXPECT_CU(222, cuModuleLoadDataEx(&module, image.data(), 2, options, values));
  EXPECT_NE(std::strstr(log, "Unsupported .version 9.9; current version is '9.0'"), nullptr) << log;
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log) + 1);
}

class Libraries : public WithDevice {
 protected:
  static CUlibrary load(const Buffer& image) {
    CUlibrary library = nullptr;
    EXPECT_CU(0, cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    return library;
  }
};

TEST_F(Libraries, OneKernelForAllContexts) {
  FatbinBuilder both;
  add_cubin(add_cubin(both, 86), 90);
  Buffer image = both.build();
  const CUlibrary library = load(image);
  std::fill(image.begin(), image.end(), std::byte{0});  // not preserved: the driver has its own copy
  CUkernel kernel = nullptr;
  CUkernel again = nullptr;
  ASSERT_CU(0, cuLibraryGetKernel(&kernel, library, "first"));
  ASSERT_CU(0, cuLibraryGetKernel(&again, library, "first"));
  EXPECT_EQ(kernel, again);
  CUfunction here = nullptr;
  ASSERT_CU(0, cuKernelGetFunction(&here, kernel));
  int version = 0;
  EXPECT_CU(0, cuKernelGetAttribute(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel, 1));
  EXPECT_EQ(version, 86);
  CUcontext other = nullptr;
  ASSERT_CU(0, cuCtxCreate(&other, nullptr, 0, 1));
  CUfunction there = nullptr;
  ASSERT_CU(0, cuKernelGetFunction(&there, kernel));
  EXPECT_NE(here, there);
  EXPECT_CU(0, cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, there));
  EXPECT_EQ(version, 86);
  ASSERT_CU(0, cuCtxDestroy(other));  // takes its functions along, not the kernel
  ASSERT_CU(0, cuCtxSetCurrent(context_));
  EXPECT_CU(0, cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments(),
                              nullptr));
  EXPECT_CU(400, cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_NUM_REGS, there));
  int nothing = 0;
  EXPECT_CU(400, cuKernelGetFunction(&there, reinterpret_cast<CUkernel>(&nothing)));
  ASSERT_CU(0, cuLibraryUnload(library));
  EXPECT_CU(400, cuKernelGetFunction(&there, kernel));
}

TEST_F(Libraries, ManagedVariablesAreOfTheProcess) {
  const Buffer image = build_cubin(with_variables());
  const CUlibrary library = load(image);
  ASSERT_CU(0, cuCtxSetCurrent(nullptr));  // the runtime asks before there is a context
  CUdeviceptr managed = 0;
  std::size_t bytes = 0;
  ASSERT_CU(0, cuLibraryGetManaged(&managed, &bytes, library, "shared_with_host"));
  EXPECT_EQ(bytes, 4U);
  *reinterpret_cast<int*>(managed) = 17;
  EXPECT_CU(500, cuLibraryGetManaged(&managed, &bytes, library, "table"));
  EXPECT_CU(201, cuLibraryGetGlobal(&managed, nullptr, library, "table"));
  ASSERT_CU(0, cuCtxSetCurrent(context_));
  CUdeviceptr in_context = 0;
  ASSERT_CU(0, cuLibraryGetGlobal(&in_context, nullptr, library, "shared_with_host"));
  int value = 0;
  ASSERT_CU(0, cuMemcpyDtoH(&value, in_context, 4));
  EXPECT_EQ(value, 17);
  ASSERT_CU(0, cuLibraryUnload(library));
}

TEST_F(Libraries, RelocatablePartsBehindAWrapper) {
  FatbinBuilder linked;
  add_cubin(linked, 75);
  FatbinBuilder part;
  part.ptx(arch_of(80), {7, 8}, ptx(80));
  FatbinBuilder other_part;
  std::string second = ptx(80);
  second.replace(second.find("first("), 5, "extra");
  other_part.ptx(arch_of(80), {7, 8}, second);
  const Buffer linked_bytes = linked.build();
  const Buffer part_bytes = part.build();
  const Buffer other_bytes = other_part.build();
  const void* parts[] = {part_bytes.data(), other_bytes.data(), nullptr};
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  const image::FatbinWrapper second_version{image::kWrapperMagic, 2, address(linked_bytes.data()),
                                            address(parts)};
  const image::FatbinWrapper first_version{image::kWrapperMagic, 1, address(linked_bytes.data()),
                                           address(parts)};
  CUmodule module = nullptr;
  EXPECT_CU(209, cuModuleLoadFatBinary(&module, &first_version));
  ASSERT_CU(0, cuModuleLoadFatBinary(&module, &second_version));
  CUfunction function = nullptr;
  EXPECT_CU(0, cuModuleGetFunction(&function, module, "first"));
  EXPECT_CU(0, cuModuleGetFunction(&function, module, "extra"));  // of the other part: all are linked
  const image::FatbinWrapper unknown{image::kWrapperMagic, 7, address(linked_bytes.data()), 0};
  EXPECT_CU(200, cuModuleLoadFatBinary(&module, &unknown));
}

}  // namespace
}  // namespace kshim::sim::test
