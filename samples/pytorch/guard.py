# SPDX-License-Identifier: Apache-2.0
"""Asks whether an extension has code for this GPU before torch.ops.load_library() loads it: `guard.py LIBRARY [KERNEL]`. As in the
guards of vLLM, whose test is whether an operator is there, which says nothing of its kernels."""
import sys

import kshim
import torch

library, kernel = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
torch.cuda.init()
answer = kshim.covers(library, kernel)  # for the GPU that PyTorch uses in this thread, and its driver
if not answer:  # "none", and "unknown": what works without the extension is not risked for it
    print(f"guard: without {library}: {answer}, {answer.text}")
else:
    torch.ops.load_library(library)
    print(f"guard: {library} is loaded: {answer}, {answer.image}")
