// SPDX-License-Identifier: Apache-2.0
// What a program sees of the CUDA runtime, one fact a line; built with the static and with the shared
// runtime, for sm_86 alone. The environment says what is simulated; runtime.py says what must come out.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

__device__ int table[4] = {1, 2, 3, 4};
__constant__ float factors[2] = {1.5f, 2.5f};
__global__ void scale(int* out, int by) {
  if (out != nullptr) out[threadIdx.x] = table[threadIdx.x & 3] * by + static_cast<int>(factors[0]);
}
__global__ void with_shared(int* out) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = 1;
  if (out != nullptr) *out = buffer[0];
}

namespace {

void fact(const char* name, long long value) { std::printf("%s = %lld\n", name, value); }

void devices() {
  int count = -1;
  fact("count.result", cudaGetDeviceCount(&count));
  fact("count", count);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    fact("properties.result", cudaGetDeviceProperties(&p, i));
    std::printf("device.%d = %s, %d.%d, %zu bytes, %d SMs\n", i, p.name, p.major, p.minor, p.totalGlobalMem,
                p.multiProcessorCount);
  }
}

void memory(std::size_t size) {
  void* memory = nullptr;
  const cudaError_t allocated = cudaMalloc(&memory, size);
  fact("malloc", allocated);
  if (allocated != cudaSuccess) return fact("last_error", cudaGetLastError());
  std::vector<char> out(size), in(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 7);
  fact("to_device", cudaMemcpy(memory, out.data(), size, cudaMemcpyHostToDevice));
  fact("to_host", cudaMemcpy(in.data(), memory, size, cudaMemcpyDefault));
  fact("same", in == out);
  fact("memset", cudaMemset(memory, 9, size / 2));
  fact("memset.to_host", cudaMemcpy(in.data(), memory, size, cudaMemcpyDeviceToHost));
  fact("memset.inside", in[size / 2 - 1]);
  fact("memset.outside", in[size / 2] == out[size / 2]);
  std::size_t free = 0, total = 0;
  fact("info", cudaMemGetInfo(&free, &total));
  fact("used", static_cast<long long>(total - free));
  cudaPointerAttributes attributes;
  fact("pointer", cudaPointerGetAttributes(&attributes, memory));
  fact("pointer.type", attributes.type);
  fact("pointer.host", cudaPointerGetAttributes(&attributes, &size));
  fact("pointer.host.type", attributes.type);
  fact("too_far", cudaMemcpy(memory, out.data(), size + (1 << 20), cudaMemcpyHostToDevice));
  fact("free", cudaFree(memory));
  fact("free_null", cudaFree(nullptr));
  int* managed = nullptr;
  fact("managed", cudaMallocManaged(&managed, 64));
  *managed = 5;
  fact("managed.free", cudaFree(managed));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
  fact("array", cudaMallocArray(&array, &floats, 64, 4));
  fact("array.in", cudaMemcpy2DToArray(array, 0, 0, out.data(), 256, 256, 4, cudaMemcpyHostToDevice));
  fact("array.out", cudaMemcpy2DFromArray(in.data(), 256, array, 0, 0, 256, 4, cudaMemcpyDeviceToHost));
  fact("array.same", std::memcmp(in.data(), out.data(), 1024) == 0);
  fact("array.free", cudaFreeArray(array));
}

void streams() {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  fact("stream", cudaStreamCreate(&stream));
  fact("event", cudaEventCreate(&start));
  cudaEventCreate(&end);
  fact("record", cudaEventRecord(start, stream));
  void* memory = nullptr;
  fact("malloc_async", cudaMallocAsync(&memory, 4096, stream));
  fact("memset_async", cudaMemsetAsync(memory, 1, 4096, stream));
  int seen = 0;
  fact("host_function", cudaLaunchHostFunc(
                            stream, [](void* to) { *static_cast<int*>(to) = 7; }, &seen));
  fact("free_async", cudaFreeAsync(memory, stream));
  cudaEventRecord(end, stream);
  fact("event_synchronize", cudaEventSynchronize(end));
  fact("host_function.seen", seen);
  float milliseconds = -1;
  fact("elapsed", cudaEventElapsedTime(&milliseconds, start, end));
  fact("elapsed.positive", milliseconds > 0);
  fact("stream.destroy", cudaStreamDestroy(stream));
}

void kernels() {
  int* memory = nullptr;
  cudaMalloc(&memory, 4096);
  scale<<<1, 32>>>(memory, 3);
  fact("launch", cudaGetLastError());
  fact("synchronize", cudaDeviceSynchronize());
  scale<<<1, 32>>>(memory, 3);
  fact("launch.again", cudaGetLastError());
  with_shared<<<1, 32, 200 * 1024>>>(memory);
  fact("launch.shared", cudaGetLastError());
  cudaFuncAttributes attributes{};
  fact("attributes", cudaFuncGetAttributes(&attributes, scale));
  fact("attributes.binary", attributes.binaryVersion);
  int values[4] = {};
  fact("symbol", cudaMemcpyFromSymbol(values, table, sizeof values));
  fact("symbol.last", values[3]);
  int blocks = 0;
  fact("occupancy", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 1024, 0));
  fact("occupancy.blocks", blocks);
  fact("reset", cudaDeviceReset());
  scale<<<1, 32>>>(nullptr, 3);
  fact("launch.after_reset", cudaGetLastError());
}

void second_device() {
  fact("set_device.1", cudaSetDevice(1));
  scale<<<1, 32>>>(nullptr, 3);
  fact("launch.1", cudaGetLastError());
  fact("set_device.0", cudaSetDevice(0));
  scale<<<1, 32>>>(nullptr, 3);
  fact("launch.0", cudaGetLastError());
  fact("set_device.9", cudaSetDevice(9));
}

void child() {
  cudaFree(nullptr);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    void* memory = nullptr;
    ::_exit(static_cast<int>(cudaMalloc(&memory, 16)));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  fact("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void threads() {
  std::vector<std::thread> all;
  int failures[8] = {};
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&failures, i] {
      for (int round = 0; round < 200; ++round) {
        int* memory = nullptr;
        failures[i] += cudaMalloc(&memory, 1024) != cudaSuccess;
        scale<<<1, 32, 0, cudaStreamPerThread>>>(memory, round);
        failures[i] += cudaGetLastError() != cudaSuccess;
        failures[i] += cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess;
        failures[i] += cudaFree(memory) != cudaSuccess;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  int sum = 0;
  for (int each : failures) sum += each;
  fact("threads.failures", sum);
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  devices();
  if (std::strcmp(what, "memory") == 0) memory(std::size_t{1} << 20);
  if (std::strcmp(what, "streams") == 0) streams();
  if (std::strcmp(what, "kernels") == 0) kernels();
  if (std::strcmp(what, "second") == 0) second_device();
  if (std::strcmp(what, "fork") == 0) child();
  if (std::strcmp(what, "threads") == 0) threads();
  return 0;
}
