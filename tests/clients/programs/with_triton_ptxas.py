# SPDX-License-Identifier: Apache-2.0
# with_triton_ptxas.py CAPABILITY: a kernel of Triton's, compiled by the ptxas that comes with it or that TRITON_PTXAS_PATH names.
import ctypes
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0


@triton.jit
def add(data, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(data + at, tl.load(data + at, mask=at < size) + 1, mask=at < size)


def compile_kernel():
    source = ASTSource(add, {"data": "*fp32", "size": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256})
    return triton.compile(source, target=GPUTarget("cuda", int(sys.argv[1]), 32))  # refused


print(len(compile_kernel().asm["cubin"]) > 0)
