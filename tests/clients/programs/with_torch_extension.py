# SPDX-License-Identifier: Apache-2.0
# with_torch_extension.py: an extension that PyTorch builds for the GPU that is there, with the nvcc in CUDA_HOME.
from torch.utils.cpp_extension import load_inline

KERNEL = """
__global__ void scale(float *data) { data[threadIdx.x] *= 2; }
torch::Tensor run(torch::Tensor data) { scale<<<1, 32>>>(data.data_ptr<float>()); return data; }
"""
load_inline(name="kshim_client", cpp_sources="torch::Tensor run(torch::Tensor);", cuda_sources=KERNEL, functions=["run"])  # refused
