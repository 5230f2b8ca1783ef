# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with two workers.   loader.py fork|spawn [--cuda]     --cuda: the workers make their batches on the GPU"""
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((16,), float(index), device=self.device).cpu()  # CUDA IPC is not simulated


def main():
    method, device = sys.argv[1], "cuda" if "--cuda" in sys.argv else "cpu"
    weights = torch.ones(16, device="cuda")  # before the workers start
    total = 0
    for batch in DataLoader(Images(device), batch_size=2, num_workers=2, multiprocessing_context=method):
        total += len(batch.to("cuda") * weights)
    print(f"{total} images")


if __name__ == "__main__":
    main()
