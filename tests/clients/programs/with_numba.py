# SPDX-License-Identifier: Apache-2.0
# with_numba.py [CUBIN]: one kernel of Numba's, compiled for the device at hand or for NUMBA_FORCE_CUDA_CC; then a module made
# elsewhere, loaded by Numba's driver.
import sys
import warnings

import numpy
from client import end, step
from cuda.core import ObjectCode
from numba import cuda

warnings.simplefilter("ignore")  # that one block is a waste of the GPU


@cuda.jit
def numbas(data):
    data[cuda.threadIdx.x] += 1


with step("to_device"):
    data = cuda.to_device(numpy.zeros(32, numpy.float32))
with step("launch"):
    numbas[1, 32](data)  # refused
for path in sys.argv[1:]:
    with step("module"):
        module = cuda.current_context().create_module_image(ObjectCode.from_cubin(path))
        module.get_function("scale")  # fails
with step("stream, pinned memory"):
    stream = cuda.stream()
    cuda.to_device(cuda.pinned_array(32, numpy.float32), stream=stream)
with step("synchronize"):
    cuda.synchronize()
with step("close"):
    cuda.close()
end()
