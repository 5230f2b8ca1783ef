# SPDX-License-Identifier: Apache-2.0
# One kernel of cuTile's, which tileiras compiles in a process of its own when it is launched.
import ctypes

import cuda.tile as ct

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0


class Memory:
    """What cuTile wants of an array."""

    def __init__(self, count):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(count * 4)) == 0
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (address.value, False), "version": 3, "strides": None}


@ct.kernel
def scale(source, out, TILE: ct.Constant[int]):
    block = ct.bid(0)
    ct.store(out, index=(block,), tile=ct.load(source, index=(block,), shape=(TILE,)) * 2)


ct.launch(0, (4,), scale, (Memory(1024), Memory(1024), 256))  # refused
print("launched")
