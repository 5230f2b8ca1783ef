// SPDX-License-Identifier: Apache-2.0
// trouble MODE: failures that no rebuild fixes, each as programs meet it. Every call is printed with its
// answer.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

__global__ void scale(float* data) { data[threadIdx.x] *= 2; }
__global__ void __launch_bounds__(64) narrow(float* data) { data[threadIdx.x] *= 3; }

int say(const char* what, cudaError_t error) {
  std::printf("%s: %d\n", what, error);
  std::fflush(stdout);
  return error == cudaSuccess ? 0 : 1;
}

float* memory() {
  float* data = nullptr;
  cudaMalloc(&data, 4096);
  return data;
}

int out_of_memory() {
  void* data = nullptr;
  return say("cudaMalloc", cudaMalloc(&data, std::size_t{1} << 50U));
}

int invalid_device() { return say("cudaSetDevice", cudaSetDevice(7)); }

int count_devices() {
  int count = 0;
  return say("cudaGetDeviceCount", cudaGetDeviceCount(&count));
}

int too_many_threads() {
  scale<<<1, 2048>>>(memory());
  return say("scale<<<1, 2048>>>", cudaGetLastError());
}

int beyond_bounds() {
  narrow<<<1, 512>>>(memory());
  return say("narrow<<<1, 512>>>", cudaGetLastError());
}

int fault() {
  scale<<<1, 32>>>(memory());
  const int at_once = say("scale<<<1, 32>>>", cudaGetLastError());
  return at_once + say("cudaDeviceSynchronize", cudaDeviceSynchronize()) +
         say("cudaMalloc", cudaMalloc(reinterpret_cast<void**>(new void*), 16));
}

int foreign_stream() {
  cudaStream_t stream = nullptr;
  cudaSetDevice(0);
  cudaStreamCreate(&stream);
  cudaSetDevice(1);
  scale<<<1, 32, 0, stream>>>(memory());
  return say("scale on another device's stream", cudaGetLastError());
}

int forked() {
  memory();
  const pid_t child = fork();
  if (child == 0) {
    void* data = nullptr;
    _exit(say("cudaMalloc in a child", cudaMalloc(&data, 16)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

struct Mode {
  const char* name;
  int (*run)();
};
constexpr Mode kModes[] = {{"out-of-memory", out_of_memory},   {"invalid-device", invalid_device},
                           {"count-devices", count_devices},   {"too-many-threads", too_many_threads},
                           {"beyond-bounds", beyond_bounds},   {"fault", fault},
                           {"foreign-stream", foreign_stream}, {"forked", forked}};

}  // namespace

/// With "go-on" behind the mode the exit status is 0 whatever happened.
int main(int argc, char** argv) {
  for (const Mode& mode : kModes)
    if (argc > 1 && std::strcmp(mode.name, argv[1]) == 0) return mode.run() != 0 && argc < 3 ? 1 : 0;
  return 2;
}
