// SPDX-License-Identifier: Apache-2.0
// compilers SM: a kernel compiled in the process: NVRTC to a cubin and to PTX, nvJitLink, cuLink. SM is the
// architecture to compile for, such as 90; the device has its own.
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include <string>

#include "client.h"

namespace {

constexpr const char* kSource = "extern \"C\" __global__ void scale(float* data) { data[threadIdx.x] *= 2; }";

std::string compile(const std::string& arch, bool cubin) {
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, kSource, "scale.cu", 0, nullptr, nullptr);
  const std::string option = "--gpu-architecture=" + arch;
  const char* options[] = {option.c_str()};
  std::string out;
  if (step("nvrtcCompileProgram", nvrtcCompileProgram(program, 1, options))) {
    std::size_t size = 0;
    cubin ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size);
    out.resize(size);
    cubin ? nvrtcGetCUBIN(program, out.data()) : nvrtcGetPTX(program, out.data());
  }
  nvrtcDestroyProgram(&program);
  return out;
}

std::string link(const std::string& ptx, const std::string& arch) {
  const std::string option = "-arch=" + arch;
  const char* options[] = {option.c_str()};
  nvJitLinkHandle handle = nullptr;
  std::string out;
  if (step("nvJitLinkCreate", nvJitLinkCreate(&handle, 1, options)) &&
      step("nvJitLinkAddData",
           nvJitLinkAddData(handle, NVJITLINK_INPUT_PTX, ptx.data(), ptx.size(), "scale")) &&
      step("nvJitLinkComplete", nvJitLinkComplete(handle))) {
    std::size_t size = 0;
    nvJitLinkGetLinkedCubinSize(handle, &size);
    out.resize(size);
    nvJitLinkGetLinkedCubin(handle, out.data());
  }
  return out;
}

void run(const char* name, const void* image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr data = 0;
  cuMemAlloc(&data, 4096);
  void* arguments[] = {&data};
  if (step(name, cuModuleLoadData(&module, image)) &&
      step("cuModuleGetFunction", cuModuleGetFunction(&function, module, "scale")))
    step("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string number = argv[1];
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (!step("cuInit", cuInit(0)) || !step("cuDeviceGet", cuDeviceGet(&device, 0))) return 1;
  step("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device));
  step("cuCtxSetCurrent", cuCtxSetCurrent(context));
  const std::string cubin = compile("sm_" + number, true);
  if (!cubin.empty()) run("cuModuleLoadData(cubin)", cubin.data());
  const std::string ptx = compile("compute_" + number, false);
  if (ptx.empty()) return g_failed;
  run("cuModuleLoadData(PTX)", ptx.data());
  const std::string linked = link(ptx, "sm_" + number);
  if (!linked.empty()) run("cuModuleLoadData(nvJitLink)", linked.data());
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  if (step("cuLinkCreate", cuLinkCreate(0, nullptr, nullptr, &state)) &&
      step("cuLinkAddData", cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.data()), ptx.size(),
                                          "scale", 0, nullptr, nullptr)) &&
      step("cuLinkComplete", cuLinkComplete(state, &image, &size)))
    run("cuModuleLoadData(cuLink)", image);
  return g_failed;
}
