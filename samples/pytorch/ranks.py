# SPDX-License-Identifier: Apache-2.0
"""One process a GPU, as torchrun starts them; no process group, which needs GPUs that can compute."""
import os

import torch
from train import train


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    train("cuda", 1, False)
    print(f"rank {rank} trained")


if __name__ == "__main__":
    main()
