# SPDX-License-Identifier: Apache-2.0
"""The scenarios of this folder: what runs, on what, and what kshim must say. `run` runs them."""
from wheels import PYTHON, Scenario

MX330 = "6.1,name=GeForce MX330"

OWN_WORDS = "CUDA error: no kernel image is available for execution on the device"

SCENARIOS = (
    Scenario("mx330", "torch-2.9.1", "the wheel of today on a GPU that it has dropped", (MX330,), (PYTHON, "train.py"), 1,
             ("no-image-for-arch", "libtorch_cuda.so of torch 2.9.1", "train.py:", "sm_70", "sm_120", "needed    sm_61", "whl/cu126",
              "updating the driver", "building with a CUDA newer than 12.9"), programs=(OWN_WORDS,)),
    Scenario("h100", "torch-2.9.1", "the same script on a GPU that the wheel has", ("9.0",), (PYTHON, "train.py"), silent=True),
    Scenario("rtx5090", "torch-2.9.1", "and on a Blackwell GPU", ("12.0",), (PYTHON, "train.py"), silent=True),
    Scenario("compile", "torch-2.9.1", "torch.compile: Inductor, Triton and its ptxas", ("9.0",), (PYTHON, "train.py", "--compile"),
             environment=("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), silent=True),
    Scenario("no-gpu", "torch-2.9.1", "a machine without any GPU", (), (PYTHON, "train.py"), silent=True),
    Scenario("cuda11-ampere", "torch-2.0.1", "a wheel of CUDA 11.7 on a GPU of its time", ("8.6",), (PYTHON, "train.py"), silent=True),
    Scenario("cuda11-blackwell", "torch-2.0.1", "a wheel of CUDA 11.7 on a GPU that came later", ("12.0",), (PYTHON, "train.py"), 1,
             ("no-image-for-arch", "libtorch_cuda.so of torch 2.0.1", "needed    sm_120", "--index-url"), programs=(OWN_WORDS,)),
    Scenario("cuda13-rtx5090", "torch-2.15.0", "a wheel of CUDA 13 on 12.0", ("12.0",), (PYTHON, "train.py"), silent=True),
    Scenario("cuda13-gb10", "torch-2.15.0", "a wheel of CUDA 13 on 12.1, which runs code for 12.0", ("12.1",), (PYTHON, "train.py"), silent=True),
    Scenario("extension", "torch-2.15.0", "a healthy PyTorch and an extension for the wrong GPU, launched on autograd's own thread", ("8.6",),
             (PYTHON, "extended.py"), 1, ("no-image-for-arch", "scale_cuda", "scale_kernel", "sm_90", "extended.py:", "TORCH_CUDA_ARCH_LIST"),
             needs="extension:9.0", programs=("forward is done",)),
    Scenario("extension-rebuilt", "torch-2.15.0", "the same, built for both", ("8.6",), (PYTHON, "extended.py"), silent=True,
             needs="extension:8.6;9.0", programs=("backward is done",)),
    Scenario("torchrun", "torch-2.9.1", "four ranks, one of them on an older GPU", ("9.0", "9.0", "9.0", MX330),
             ("torchrun", "--nproc-per-node", "4", "ranks.py"), 1, ("no-image-for-arch", "rank 3 only", "needed    sm_61", "train.py:")),
    Scenario("workers-fork", "torch-2.9.1", "DataLoader workers by fork, on the CPU", ("9.0",), (PYTHON, "loader.py", "fork"), silent=True,
             programs=("8 images",)),
    Scenario("workers-spawn", "torch-2.9.1", "DataLoader workers by spawn that use the GPU", ("9.0",), (PYTHON, "loader.py", "spawn", "--cuda"),
             programs=("8 images",)),
    Scenario("workers-fork-cuda", "torch-2.9.1", "DataLoader workers by fork that use the GPU of their parent", ("9.0",),
             (PYTHON, "loader.py", "fork", "--cuda"), 1, programs=("Cannot re-initialize CUDA in forked subprocess",)),
    Scenario("cleaned", "torch-2.9.1", "a launcher that cleans the environment", ("9.0",),
             ("/usr/bin/env", "-i", "KSHIM_SIM_DEVICES=9.0", "LD_LIBRARY_PATH=@SIMULATOR@", "HOME=/nonexistent", PYTHON, "train.py"),
             says=("not watched:", "LD_PRELOAD")),
)
