# SPDX-License-Identifier: Apache-2.0
# with_cuda_core.py ARCH CUBIN: cuda.core: a Program compiled for that architecture, and an ObjectCode from a file.
import sys

from client import end, step
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch

SOURCE = 'extern "C" __global__ void mine(float* data) { data[threadIdx.x] += 1; }'
device = Device(0)
device.set_current()
stream = device.create_stream()
memory = device.memory_resource.allocate(4096, stream=stream)
config = LaunchConfig(grid=1, block=32)
with step("Program"):
    image = Program(SOURCE, "c++", ProgramOptions(arch=sys.argv[1])).compile("cubin")
with step("ObjectCode of a program"):
    launch(stream, config, image.get_kernel("mine"), memory)  # fails
with step("ObjectCode from a file"):
    launch(stream, config, ObjectCode.from_cubin(sys.argv[2]).get_kernel("scale"), memory, 2.0)  # fails
if device.compute_capability >= (9, 0):
    with step("cluster"):
        launch(stream, LaunchConfig(grid=4, cluster=2, block=32), image.get_kernel("mine"), memory)
    with step("graph"):
        builder = device.create_graph_builder().begin_building()
        launch(builder, config, image.get_kernel("mine"), memory)
        builder.end_building().complete().launch(stream)
with step("sync"):
    stream.sync()
end()
