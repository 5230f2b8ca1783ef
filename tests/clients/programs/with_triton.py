# SPDX-License-Identifier: Apache-2.0
# with_triton.py CAPABILITY: one kernel of Triton's, without PyTorch: compiled at its launch for the device at hand, and ahead
# of time for a device that is named, as for a machine elsewhere.
import ctypes
import sys

import triton
import triton.language as tl
from client import end, step
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor


class Half:
    """A type, as PyTorch names them."""

    itemsize = 2

    def __str__(self):
        return "torch.float16"


class Memory:
    """What Triton wants of a tensor."""

    def __init__(self, size, dtype="float32"):
        self.dtype, self.shape = dtype, (64, 64)
        address = ctypes.c_uint64()
        assert ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        self.address = address.value

    def data_ptr(self):
        return self.address


@triton.jit
def tritons(data, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(data + at, tl.load(data + at, mask=at < size) + 1, mask=at < size)


@triton.jit
def by_descriptor(source, data, SIDE: tl.constexpr):
    at = tl.arange(0, SIDE)
    tl.store(data + at[:, None] * SIDE + at[None, :], source.load([0, 0]))


driver = triton.runtime.driver.active
with step("device"):
    driver.set_current_device(0)
with step("launch"):
    tritons[(4,)](Memory(4096), 1000, BLOCK=256)
if driver.get_device_capability(0) >= (9, 0):
    with step("cluster"):
        tritons[(4,)](Memory(4096), 1000, BLOCK=256, num_ctas=2)
    with step("tensor map"):
        tensor = TensorDescriptor(Memory(8192, Half()), [64, 64], [64, 1], [64, 64])
        by_descriptor[(1,)](tensor, Memory(8192, Half()), SIDE=64)
with step("ahead of time"):
    source = ASTSource(tritons, {"data": "*fp32", "size": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256})
    compiled = triton.compile(source, target=GPUTarget("cuda", int(sys.argv[1]), 32))
with step("launch of that"):
    compiled[(4, 1, 1)](Memory(4096), 1000, 256)  # fails
end()
