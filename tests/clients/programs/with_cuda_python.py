# SPDX-License-Identifier: Apache-2.0
# with_cuda_python.py ARCH FILE...: cuda.bindings: NVRTC for that architecture, as many programs have it written in them, and
# images from files.
import sys

import numpy
from client import end, step
from cuda.bindings import driver, nvrtc

SOURCE = b'extern "C" __global__ void mine(float* data) { data[threadIdx.x] += 1; }'


def checked(results):
    if int(results[0]):
        raise RuntimeError(f"{results[0]!r}")
    return results[1] if len(results) == 2 else results[1:]


def compiled(arch):
    program = checked(nvrtc.nvrtcCreateProgram(SOURCE, b"mine.cu", 0, [], []))
    checked(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=" + arch.encode()]))
    image = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, image))
    return image


def launch(function, *extra):
    arguments = (numpy.array([int(memory)], numpy.uint64), *extra)
    addresses = numpy.array([each.ctypes.data for each in arguments], numpy.uint64)
    checked(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, addresses.ctypes.data, 0))


checked(driver.cuInit(0))
device = checked(driver.cuDeviceGet(0))
checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
memory = checked(driver.cuMemAlloc(4096))
with step("NVRTC"):
    image = compiled(sys.argv[1])
with step("cuModuleLoadData"):
    module = checked(driver.cuModuleLoadData(image))  # fails
    launch(checked(driver.cuModuleGetFunction(module, b"mine")))
with step("cuLibraryLoadData"):
    library = checked(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0))
    kernel = checked(driver.cuLibraryGetKernel(library, b"mine"))  # fails
    launch(checked(driver.cuKernelGetFunction(kernel)))
for path in sys.argv[2:]:
    with step("cuModuleLoad " + path.rsplit(".")[-1]):
        module = checked(driver.cuModuleLoad(path.encode()))  # fails
        launch(checked(driver.cuModuleGetFunction(module, b"scale")), numpy.array([2], numpy.float32))
with step("cuCtxSynchronize"):
    checked(driver.cuCtxSynchronize())
end()
