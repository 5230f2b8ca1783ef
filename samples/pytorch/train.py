# SPDX-License-Identifier: Apache-2.0
"""Two layers, a convolution, an optimizer: what a training script does, and nothing of kshim's.

train.py [--steps N] [--compile]
"""
import argparse

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8 * 16 * 16, 10)

    def forward(self, images):
        return self.head(torch.relu(self.features(images)).flatten(1))


def batches(device, count):
    for _ in range(count):
        images = torch.ones(4, 3, 16, 16).to(device)
        yield images * 0.5, torch.zeros(4, dtype=torch.long, device=device)


def train(device, steps, compiled):
    net = Net().to(device)
    step = torch.compile(net) if compiled else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for images, labels in batches(device, steps):
        loss = nn.functional.cross_entropy(step(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU: nothing to train on")
        return
    print(torch.__version__, torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
    train("cuda", options.steps, options.compile)
    print("trained")


if __name__ == "__main__":
    main()
