# SPDX-License-Identifier: Apache-2.0
# with_cutile.py: cuTile: a kernel of tiles, which its tileiras compiles for the GPU that is there. Arrays are the driver's own.
import ctypes

import cuda.tile as ct
from client import end, step

driver = ctypes.CDLL("libcuda.so.1")


class Array:
    def __init__(self, size):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * size)) == 0
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "<f4", "data": (address.value, False), "version": 3}


@ct.kernel
def add(a, b, out):
    at = ct.bid(0)
    ct.store(out, index=(at,), tile=ct.load(a, index=(at,), shape=(16,)) + ct.load(b, index=(at,), shape=(16,)))


context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
with step("launch"):
    ct.launch(0, (4, 1, 1), add, (Array(64), Array(64), Array(64)))  # refused
with step("sync"):
    assert driver.cuCtxSynchronize() == 0
end()
