// SPDX-License-Identifier: Apache-2.0
// cuLaunch*; their per-thread twins are made in entry/thunks.h.
#include "context/context.h"
#include "entry/entry.h"
#include "launch/launch.h"
#include "modules/module.h"

namespace kshim::sim {

CUresult entry::cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared, CUstream stream, void** parameters,
                               void** extra) {
  const Launch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, parameters, extra};
  return launch_kernel(function, launch, stream);
}

CUresult entry::cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                          unsigned int block_z, unsigned int shared, CUstream stream,
                                          void** parameters) {
  Launch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, parameters};
  launch.cooperative = true;
  return launch_kernel(function, launch, stream);
}

CUresult entry::cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                 void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  Launch launch = launch_of(*config);
  launch.parameters = parameters;
  launch.extra = extra;
  return launch_kernel(function, launch, config->hStream);
}

CUresult entry::cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS*, unsigned int, unsigned int) {
  // CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH is 0 on every simulated device.
  const CUresult ready = check_initialized();
  return ready != CUDA_SUCCESS ? ready : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace kshim::sim
