# SPDX-License-Identifier: Apache-2.0
# with_cupy.py [IMAGE...]: CuPy compiles for the device at hand; then modules from files, which may be for another one.
import sys

import cupy
from client import end, step

SOURCE = 'extern "C" __global__ void mine(float* data) { data[threadIdx.x] += 1; }'
TOGETHER = """#include <cooperative_groups.h>
extern "C" __global__ void together(float* data) {
  cooperative_groups::this_grid().sync();
  data[threadIdx.x] += 1;
}"""
BLOCK = ((1,), (32,))

with step("elementwise"):
    data = cupy.arange(32, dtype=cupy.float32) * 2 + 1  # refused
with step("ElementwiseKernel"):
    cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "square")(data)
with step("reduction"):
    data.sum()
with step("RawKernel"):
    cupy.RawKernel(SOURCE, "mine")(*BLOCK, (data,))
with step("RawModule"):
    cupy.RawModule(code=SOURCE).get_function("mine")(*BLOCK, (data,))
with step("RawKernel, cooperative"):
    cupy.RawKernel(TOGETHER, "together", enable_cooperative_groups=True)(*BLOCK, (data,))
with step("RawModule, relocatable"):
    cupy.RawModule(code=SOURCE, options=("-dc",)).get_function("mine")(*BLOCK, (data,))
with step("graph"):
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        data * data
        stream.end_capture().launch(stream)
        stream.synchronize()
for path in sys.argv[1:]:
    with step("RawModule from " + path.rsplit(".")[-1]):
        cupy.RawModule(path=path).get_function("scale")(*BLOCK, (data, cupy.float32(2)))  # fails
with step("synchronize"):
    cupy.cuda.runtime.deviceSynchronize()
end()
