# SPDX-License-Identifier: Apache-2.0
# TORCH_CUDA_ARCH_LIST=9.0 python setup.py build_ext --inplace
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="scale", version="0.1", ext_modules=[CUDAExtension("scale_cuda", ["scale.cu"])],
      cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)})
