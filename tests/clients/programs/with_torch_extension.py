# SPDX-License-Identifier: Apache-2.0
# with_torch_extension.py: an extension that PyTorch builds for the GPU that is there, with the nvcc in CUDA_HOME.
import os
import pathlib

from torch.utils.cpp_extension import load

source = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], "scale.cu")
source.parent.mkdir(exist_ok=True)
source.write_text("__global__ void scale(float *data) { data[threadIdx.x] *= 2; }\n", encoding="utf-8")
load(name="kshim_client", sources=[str(source)])  # refused
