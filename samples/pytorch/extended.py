# SPDX-License-Identifier: Apache-2.0
"""A healthy PyTorch, and an extension whose kernel is first launched in backward(), on autograd's own thread."""
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension"))
import scale_cuda  # noqa: E402


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values * 2

    @staticmethod
    def backward(context, gradient):
        return scale_cuda.scale(gradient, 2.0)


def main():
    weights = torch.ones(64, device="cuda", requires_grad=True)
    loss = Scale.apply(weights).sum()
    print("forward is done")
    loss.backward()
    torch.cuda.synchronize()
    print("backward is done")
    time.sleep(0.5)  # PyTorch 2.15 may abort where Python ends while autograd's thread winds up


if __name__ == "__main__":
    main()
