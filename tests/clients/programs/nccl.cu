// SPDX-License-Identifier: Apache-2.0
// NCCL: a communicator over all devices, and one all-reduce. The communicators end before the process does,
// so that NCCL's own threads do, too, and two runs can be compared.
#include <nccl.h>

#include <vector>

#include "client.h"

int main() {
  int count = 0;
  if (!step("cudaGetDeviceCount", cudaGetDeviceCount(&count))) return 1;
  const auto size = static_cast<std::size_t>(count);
  std::vector<int> devices(size);
  std::vector<ncclComm_t> ranks(size);
  std::vector<float*> data(size);
  std::vector<cudaStream_t> streams(size);
  for (int i = 0; i < count; ++i) devices[static_cast<std::size_t>(i)] = i;
  if (!step("ncclCommInitAll", ncclCommInitAll(ranks.data(), count, devices.data()))) return 1;
  for (std::size_t i = 0; i < size; ++i) {
    cudaSetDevice(static_cast<int>(i));
    cudaMalloc(&data[i], 4096);
    cudaStreamCreate(&streams[i]);
  }
  ncclGroupStart();
  for (std::size_t i = 0; i < size; ++i)
    ncclAllReduce(data[i], data[i], 1024, ncclFloat, ncclSum, ranks[i], streams[i]);
  step("ncclAllReduce", ncclGroupEnd());
  for (std::size_t i = 0; i < size; ++i) {
    cudaSetDevice(static_cast<int>(i));
    if (g_failed == 0) step("cudaStreamSynchronize", cudaStreamSynchronize(streams[i]));
    step("ncclCommDestroy", ncclCommDestroy(ranks[i]));
  }
  return g_failed;
}
