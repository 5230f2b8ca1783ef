// SPDX-License-Identifier: Apache-2.0
// The ways in which a program of the CUDA runtime launches: <<<>>>, cooperative, extended, from a graph by
// capture and by nodes, and through an entry point that the runtime hands out. Each on its own kernel.
#include <cuda.h>
#include <cuda_runtime.h>

#include "client.h"

__global__ void plain(float* data) { data[threadIdx.x] += 1; }
__global__ void cooperative(float* data) { data[threadIdx.x] += 2; }
__global__ void extended(float* data) { data[threadIdx.x] += 3; }
__global__ void captured(float* data) { data[threadIdx.x] += 4; }
__global__ void node(float* data) { data[threadIdx.x] += 5; }
__global__ void entry_point(float* data) { data[threadIdx.x] += 6; }

namespace {

void launch_graph(const char* name, cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t exec = nullptr;
  if (step("cudaGraphInstantiate", cudaGraphInstantiate(&exec, graph, 0)))
    step(name, cudaGraphLaunch(exec, stream));
}

void capture(float* data, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  step("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  captured<<<1, 32, 0, stream>>>(data);
  step("captured<<<>>>", cudaGetLastError());
  if (step("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph)))
    launch_graph("captured", graph, stream);
}

void add_node(float* data, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  void* arguments[] = {&data};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(node);
  params.gridDim = dim3(1);
  params.blockDim = dim3(32);
  params.kernelParams = arguments;
  cudaGraphNode_t added = nullptr;
  if (step("cudaGraphAddKernelNode", cudaGraphAddKernelNode(&added, graph, nullptr, 0, &params)))
    launch_graph("node", graph, stream);
}

void through_entry_point(float* data) {
  cudaFunction_t function = nullptr;
  void* launch = nullptr;
  if (!step("cudaGetFuncBySymbol",
            cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(entry_point))))
    return;
  if (!step("cudaGetDriverEntryPointByVersion",
            cudaGetDriverEntryPointByVersion("cuLaunchKernel", &launch, 12000, cudaEnableDefault)))
    return;
  void* arguments[] = {&data};
  step("cuLaunchKernel", reinterpret_cast<decltype(&cuLaunchKernel)>(launch)(function, 1, 1, 1, 32, 1, 1, 0,
                                                                             nullptr, arguments, nullptr));
}

}  // namespace

int main() {
  float* data = nullptr;
  cudaStream_t stream = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  step("cudaStreamCreate", cudaStreamCreate(&stream));
  plain<<<1, 32>>>(data);
  step("plain<<<>>>", cudaGetLastError());
  void* arguments[] = {&data};
  step("cudaLaunchCooperativeKernel", cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cooperative),
                                                                  dim3(1), dim3(32), arguments, 0, nullptr));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  step("cudaLaunchKernelEx", cudaLaunchKernelEx(&config, extended, data));
  cudaGetLastError();
  capture(data, stream);
  add_node(data, stream);
  through_entry_point(data);
  cudaGetLastError();
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}
